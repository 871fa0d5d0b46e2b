import type { ConfigMap } from '../../cluster/kinds.ts'
import { ownerReference, type Resource } from '../../core/resource.ts'
import type { OnionService } from '../api/onion-service.ts'
import { MANAGED_BY } from './names.ts'

const COMPONENT = { 'app.kubernetes.io/component': 'onion-location' }

export const locationName = (onion: string): string => `${onion}-location`

/** Whether a ConfigMap was made here for the header of a site. */
export function isLocation(map: ConfigMap): boolean {
  const component = map.metadata.labels?.['app.kubernetes.io/component']
  return component === COMPONENT['app.kubernetes.io/component']
}

/**
 * What the site on the open web says so that Tor Browser offers the onion (Onion-Location, a header of the HTTPS site;
 * it is ignored on plain HTTP): the header's value, and the line for several web servers that sends each page to its twin.
 *
 * @param address without `.onion`
 */
export function onionLocation(onion: OnionService, address: string): Resource {
  const { metadata, spec } = onion
  const scheme = spec.onionLocation?.scheme ?? 'http'
  const usual = scheme === 'http' ? 80 : 443
  const ports = spec.ports.map(({ virtualPort }) => virtualPort)
  const port = ports.includes(usual) ? usual : ports[0]!
  const origin = `${scheme}://${address}.onion${port === usual ? '' : `:${port}`}`
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      namespace: metadata.namespace ?? 'default',
      name: locationName(metadata.name),
      labels: { ...MANAGED_BY, ...COMPONENT, 'app.kubernetes.io/part-of': 'postern' },
      ownerReferences: [ownerReference(onion)],
    },
    data: {
      hostname: `${address}.onion`,
      'onion-location': origin,
      'nginx.conf': `add_header Onion-Location ${origin}$request_uri;\n`,
      'apache.conf': `Header set Onion-Location "${origin}%{REQUEST_URI}s"\n`,
      Caddyfile: `header Onion-Location ${origin}{uri}\n`,
      'meta.html': `<meta http-equiv="onion-location" content="${origin}" />\n`,
    },
  }
}
