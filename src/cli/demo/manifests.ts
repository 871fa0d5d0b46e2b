import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments, stringify } from 'yaml'
import { DEFAULT_DAEMON } from '../../tor/api/group.ts'
import { TOR_DAEMON } from '../../tor/api/tor-daemon.ts'

/** Port that the example's EndpointSlice names. */
export const SITE_PORT = 8080

/**
 * The example's manifests as they are, but for the port of the web server where that one had to move, and a TorDaemon
 * that belongs to the private network.
 */
export function writeManifests(options: {
  from: string
  to: string
  sitePort: number
  torOptions: Record<string, string>
}): void {
  const { from, to, sitePort, torOptions } = options
  mkdirSync(to, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(from).filter((file) => file.endsWith('.yaml'))) {
    const text = readFileSync(join(from, name), 'utf8')
    writeFileSync(join(to, name), sitePort === SITE_PORT ? text : withPort(text, sitePort))
  }
  const daemon = {
    apiVersion: TOR_DAEMON.apiVersion,
    kind: TOR_DAEMON.kind,
    metadata: { name: DEFAULT_DAEMON },
    spec: { options: torOptions },
  }
  const comment =
    '# The daemon of this namespace, as a member of the private network. Without it: the real one.\n'
  writeFileSync(join(to, 'daemon.yaml'), comment + stringify(daemon, { lineWidth: 0 }))
}

function withPort(text: string, port: number): string {
  return parseAllDocuments(text)
    .map((document) => {
      if (!('getIn' in document)) return ''
      if (document.get('kind') === 'Service') document.setIn(['spec', 'ports', 0, 'targetPort'], port)
      if (document.get('kind') === 'EndpointSlice') document.setIn(['ports', 0, 'port'], port)
      return document.toString({ lineWidth: 0 })
    })
    .join('---\n')
}
