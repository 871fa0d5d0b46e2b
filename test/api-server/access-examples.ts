import type { Example } from './kind-examples.ts'

/** Good and bad specs of daemons that take workloads in and keep their guards, see `kind-examples.ts`. */

const daemon = (what: string, spec: object, wrong?: Example['wrong']): Example => ({
  kind: 'TorDaemon',
  what,
  spec,
  ...(wrong === undefined ? {} : { wrong }),
})

export const ACCESS_EXAMPLES: Example[] = [
  daemon('SOCKS and HTTP CONNECT as they come', { socks: {}, httpConnect: {} }),
  daemon('ports of their own, and out to the open web', {
    socks: { port: 1080, exit: 'All' },
    httpConnect: { port: 3128, exit: 'Onions' },
  }),
  daemon('HTTP CONNECT on the port that SOCKS has alone', { httpConnect: { port: 9050 } }),
  ...(['socks', 'httpConnect'] as const).flatMap((way) => [
    ...[9080, 9081].map((port) =>
      daemon(
        `${way} on the daemon's port ${port}`,
        { [way]: { port } },
        { field: `spec.${way}.port`, says: 'must not be one of 9080 and 9081, which the daemon uses itself' },
      ),
    ),
    daemon(
      `${way} on port 0`,
      { [way]: { port: 0 } },
      { field: `spec.${way}.port`, server: /greater than or equal to 1/ },
    ),
    daemon(
      `${way} out to somewhere else`,
      { [way]: { exit: 'Everywhere' } },
      { field: `spec.${way}.exit`, server: /Unsupported value/ },
    ),
  ]),
  daemon(
    'both on one port',
    { socks: { port: 8118 }, httpConnect: {} },
    { field: 'spec', says: 'socks and httpConnect must have ports of their own' },
  ),
  daemon('guards that are kept', { persistence: {} }),
  daemon('guards that are kept in a volume of a class', {
    persistence: { size: '1Gi', storageClassName: 'fast.example', accessMode: 'ReadWriteMany' },
  }),
  daemon(
    'a volume of no size',
    { persistence: { size: '0' } },
    { field: 'spec.persistence.size', says: 'must be a size such as 100Mi' },
  ),
  daemon(
    'a volume that many only read',
    { persistence: { accessMode: 'ReadOnlyMany' } },
    { field: 'spec.persistence.accessMode', server: /Unsupported value/ },
  ),
  daemon(
    'a class that is no name',
    { persistence: { storageClassName: 'Fast!' } },
    {
      field: 'spec.persistence.storageClassName',
      says: "must be lower-case letters, digits, '-' and '.', as every name in Kubernetes",
    },
  ),
]
