import type { Example } from './kind-examples.ts'

/** Good and bad specs of how an onion is looked at from outside, see `kind-examples.ts`. */

const PATH = 'must be a path such as /health'
const onion = (what: string, probe: object, wrong?: Example['wrong']): Example => ({
  kind: 'OnionService',
  what,
  spec: { ports: [{ virtualPort: 80, backend: { service: 'web', port: 80 } }], probe },
  ...(wrong === undefined ? {} : { wrong }),
})

export const PROBE_EXAMPLES: Example[] = [
  onion('nothing said of how it is looked at', {}),
  onion('nobody looks', { enabled: false }),
  onion('all that there is of a look', { enabled: true, intervalSeconds: 10, http: { path: '/up?a=b' } }),
  onion('a look all the time', { intervalSeconds: 9 }, { field: 'spec.probe.intervalSeconds', server: /10/ }),
  onion(
    'a look once a week',
    { intervalSeconds: 604_800 },
    { field: 'spec.probe.intervalSeconds', server: /86400/ },
  ),
  onion('a page without a path', { http: {} }, { field: 'spec.probe.http.path', server: /Required value/ }),
  onion('a path that is none', { http: { path: 'up' } }, { field: 'spec.probe.http.path', says: PATH }),
  onion(
    'a path that is two lines',
    { http: { path: '/up\r\nHost: other' } },
    { field: 'spec.probe.http.path', says: PATH },
  ),
  onion(
    'a path without end',
    { http: { path: `/${'a'.repeat(256)}` } },
    { field: 'spec.probe.http.path', server: /256/ },
  ),
]
