import type { Example } from './kind-examples.ts'

/** Good and bad specs of bridges, see `kind-examples.ts`. */

const SEED = { name: 'tor-bridges' }
const daemon = (what: string, bridges: object, wrong?: Example['wrong']): Example => ({
  kind: 'TorDaemon',
  what,
  spec: { bridges },
  ...(wrong === undefined ? {} : { wrong }),
})
const source = (url: string): object => ({ source: { https: { url } } })
const WHERE = 'must have a seed, a source, or both: without a bridge the daemon never connects'
const HTTPS = 'must begin with https:// and have no user name in it'

export const BRIDGE_EXAMPLES: Example[] = [
  daemon('bridges of a seed', { seed: SEED }),
  daemon('bridges of a source', source('https://bridges.example/bridges?transport=obfs4')),
  daemon('all that there is about bridges', {
    transport: 'webtunnel',
    seed: { ...SEED, key: 'mine.txt' },
    ...source('https://bridges.example:8443/'),
    minHealthy: 1,
    maxBridges: 50,
    evictGraceSeconds: 0,
  }),
  daemon('bridges from nowhere', { transport: 'obfs4' }, { field: 'spec.bridges', says: WHERE }),
  daemon(
    'an unknown transport',
    { seed: SEED, transport: 'obfs3' },
    {
      field: 'spec.bridges.transport',
      server: /Unsupported value: "obfs3"/,
    },
  ),
  ...['http://bridges.example/', 'https://me:secret@bridges.example/', 'bridges.example'].map((url) =>
    daemon(`a source at ${url}`, source(url), { field: 'spec.bridges.source.https.url', says: HTTPS }),
  ),
  daemon(
    'more healthy ones than there may be',
    { seed: SEED, minHealthy: 7 },
    {
      field: 'spec.bridges',
      says: 'minHealthy must be at most maxBridges',
    },
  ),
  daemon(
    'too many bridges',
    { seed: SEED, maxBridges: 51 },
    {
      field: 'spec.bridges.maxBridges',
      server: /less than or equal to 50/,
    },
  ),
  daemon(
    'a grace that is none',
    { seed: SEED, evictGraceSeconds: -1 },
    {
      field: 'spec.bridges.evictGraceSeconds',
      server: /greater than or equal to 0/,
    },
  ),
]
