import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { LevelWithSilent } from 'pino'
import { messageOf } from '../../core/errors.ts'
import { UsageError } from '../errors.ts'
import { LOG_LEVELS } from '../log-levels.ts'
import {
  CONTROLLER_NAMES,
  type ControllerName,
  FLAGS,
  MOST_WORKERS,
  nameOf,
  PULL_POLICIES,
  type RawSettings,
  type Setting,
} from './flags.ts'
import {
  type Address,
  address,
  bool,
  holder,
  image,
  namespace,
  namespaces,
  objectName,
  oneOf,
  someOf,
  wholeNumber,
} from './values.ts'

/** All that the operator was told, checked. */
export interface OperatorSettings {
  controllers: ControllerName[]
  /** Undefined: all. */
  namespaces: string[] | undefined
  kubeconfig: string | undefined
  context: string | undefined
  leaderElect: boolean
  /** Undefined: where the connection says that we are. */
  leaseNamespace: string | undefined
  leaseName: string
  identity: string
  /** Set wherever the tor controller runs. */
  torImage: string | undefined
  imagePullPolicy: string | undefined
  networkPolicies: boolean
  /** Undefined: not served. */
  metricsAddress: Address | undefined
  healthAddress: Address | undefined
  logLevel: LevelWithSilent
  concurrency: number
  /** Where this process runs, if it does so in a pod. */
  podNamespace: string | undefined
}

/**
 * Checks everything, and refuses with all that is wrong: flag and variable, value, remedy, a line each.
 *
 * @param raw as commander collected it: flags before variables before defaults
 * @throws UsageError
 */
export function readSettings(raw: RawSettings, env: NodeJS.ProcessEnv = process.env): OperatorSettings {
  const faults: string[] = []
  const read = <T>(setting: Setting, reader: (text: string) => T): T | undefined => {
    const given = raw[setting]
    const { fallback } = FLAGS[setting]
    // An empty variable is as good as none.
    const text = given === undefined || given === '' ? fallback : String(given)
    if (text === undefined) return undefined
    try {
      return reader(text.trim())
    } catch (error) {
      faults.push(`${nameOf(setting)}: ${messageOf(error)}`)
      return undefined
    }
  }
  const podNamespace = env.POD_NAMESPACE || undefined
  const settings = {
    controllers: read('controllers', (text) => someOf(text, CONTROLLER_NAMES)),
    namespaces: read('namespaces', namespaces),
    kubeconfig: read('kubeconfig', (text) => text),
    context: read('context', (text) => text),
    leaderElect: read('leaderElect', bool),
    leaseNamespace: read('leaseNamespace', namespace) ?? podNamespace,
    leaseName: read('leaseName', objectName),
    identity: read('identity', holder) ?? (env.POD_NAME || `${hostname()}_${randomBytes(4).toString('hex')}`),
    torImage: read('torImage', image),
    imagePullPolicy: read('imagePullPolicy', (text) => oneOf(text, PULL_POLICIES)),
    networkPolicies: read('networkPolicies', bool),
    metricsAddress: read('metricsAddress', address),
    healthAddress: read('healthAddress', address),
    logLevel: read('logLevel', (text) => oneOf(text, LOG_LEVELS)),
    concurrency: read('concurrency', (text) => wholeNumber(text, 1, MOST_WORKERS)),
    podNamespace,
  }
  const { controllers, metricsAddress, healthAddress } = settings
  if (controllers?.includes('tor') !== false && !raw.torImage) {
    faults.push(`${nameOf('torImage')}: is required for the controller tor: name the image postern-tor`)
  }
  if (metricsAddress !== undefined && metricsAddress.port === healthAddress?.port) {
    faults.push(
      `${nameOf('healthAddress')}: port ${metricsAddress.port} serves the metrics already: choose another one`,
    )
  }
  if (faults.length > 0) {
    throw new UsageError(
      faults.length === 1
        ? faults[0]!
        : `${faults.length} settings are wrong:${faults.map((one) => `\n  ${one}`).join('')}`,
    )
  }
  return settings as OperatorSettings
}
