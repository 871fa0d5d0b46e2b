import { keyFor } from '../../core/resource.ts'
import type { OnionProxy } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'

/** What users declare. */
export type Declared = OnionService | OnionProxy | TorDaemon

/** Index of onions, proxies and daemons by the Secrets that they name. */
export const BY_USER_SECRET = 'user-secret'

/** Keys of the Secrets that an OnionService, an OnionProxy or a TorDaemon names. */
export function secretsNamedBy(object: Declared): string[] {
  const names = new Set<string>()
  const { spec } = object as {
    spec?: Partial<OnionService['spec'] & OnionProxy['spec'] & NonNullable<TorDaemon['spec']>>
  }
  if (spec?.privateKeySecret !== undefined) names.add(spec.privateKeySecret.name)
  for (const { name } of spec?.formerKeys ?? []) names.add(name)
  for (const target of spec?.targets ?? []) {
    if (target.clientAuthSecret !== undefined) names.add(target.clientAuthSecret.name)
  }
  if (spec?.bridges?.seed !== undefined) names.add(spec.bridges.seed.name)
  return [...names].map((name) => keyFor(object.metadata.namespace, name))
}
