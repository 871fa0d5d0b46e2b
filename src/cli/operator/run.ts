import { setTimeout as sleep } from 'node:timers/promises'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { ProbeServer, type ProbeServerOptions } from '../../agent/probe-server.ts'
import { KUBERNETES_KINDS } from '../../cluster/kinds.ts'
import { KubernetesCluster } from '../../cluster/kubernetes/cluster.ts'
import { connect, loadSettings } from '../../cluster/kubernetes/connect.ts'
import { OperatorMetrics } from '../../controller/metrics.ts'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import type { Logger } from '../../core/logger.ts'
import { Exit, exitCodeOf } from '../errors.ts'
import { onStop } from '../signals.ts'
import { version } from '../version.ts'
import { CONTROLLERS } from './controllers.ts'
import { CUSTOM_RESOURCE_DEFINITION } from './crds.ts'
import { nameOf, type RawSettings, type Setting } from './flags.ts'
import { Health } from './health.ts'
import { Lifecycle } from './lifecycle.ts'
import { operatorLogger } from './log.ts'
import { type OperatorSettings, readSettings } from './settings.ts'
import type { Address } from './values.ts'

/** Milliseconds for an orderly end: within the thirty seconds that a pod has. */
const GRACE = 20_000

/**
 * The operator's process, until a signal.
 *
 * @throws UsageError, and PosternError of what keeps it from starting; once it has started it ends the process itself
 */
export async function runOperator(raw: RawSettings): Promise<void> {
  const settings = readSettings(raw)
  const log = operatorLogger(settings.logLevel)
  const { kubeconfig, context } = settings
  const connection = loadSettings({
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  })
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 50 })
  // Gauges with the names of counters, which Prometheus' linter refuses; the same is there by type, which is a sum away.
  for (const what of ['handles', 'requests', 'resources']) {
    registry.removeSingleMetric(`nodejs_active_${what}_total`)
  }
  const metrics = new OperatorMetrics({ registry, version: version() })
  const api = connect(connection, {
    component: 'operator',
    version: version(),
    onRequest: ({ method, code, seconds }) => metrics.request(method, code, seconds),
  })
  const cluster = new KubernetesCluster(api, {
    log,
    kinds: [
      ...KUBERNETES_KINDS,
      CUSTOM_RESOURCE_DEFINITION,
      ...settings.controllers.flatMap((name) => CONTROLLERS[name].kinds),
    ],
    ...(settings.namespaces === undefined ? {} : { namespaces: settings.namespaces }),
    hooks: {
      onRestart: ({ plural }) => metrics.watchRestarted(plural),
      onRelist: ({ plural }) => metrics.relisted(plural),
    },
  })
  const lifecycle = new Lifecycle({
    cluster,
    states: () => cluster.states(),
    settings,
    leaseNamespace: settings.leaseNamespace ?? connection.namespace,
    metrics,
    log,
  })
  const health = new Health(lifecycle)
  const servers = await serve(settings, health, registry)
  const { source, server } = connection
  log.info(
    { version: version(), node: process.versions.node, server, source, identity: settings.identity },
    'operator starts',
  )
  endOnFault(log)
  const stop = onStop()
  void stop.asked.then(() => log.info({ limit: GRACE }, 'operator stops; a second signal ends it at once'))
  const end = async (): Promise<void> => {
    await lifecycle.run(stop.signal)
    await cluster.close()
    await api.close()
    health.close()
    await Promise.all(servers.map((one) => one.close()))
  }
  try {
    await Promise.race([end(), tooLate(stop.asked)])
    log.info({}, 'operator has stopped')
    process.exit(Exit.ok)
  } catch (error) {
    // At once: what still runs must not write any more.
    log.error({ error: messageOf(error), code: codeOf(error) }, 'operator ends')
    process.exit(exitCodeOf(error))
  }
}

async function serve(settings: OperatorSettings, health: Health, registry: Registry): Promise<ProbeServer[]> {
  const servers: ProbeServer[] = []
  const open = async (
    setting: Setting,
    address: Address | undefined,
    what: Pick<ProbeServerOptions, 'live' | 'ready' | 'registry'>,
  ): Promise<void> => {
    if (address === undefined) return
    const server = new ProbeServer({ ...address, ...what })
    try {
      await server.listen()
    } catch (error) {
      const text = `${nameOf(setting)}: cannot listen on ${address.host}:${address.port} (${messageOf(error)}): choose another address`
      throw new PosternError('AddressUnavailable', text, { cause: error })
    }
    servers.push(server)
  }
  await open('healthAddress', settings.healthAddress, {
    live: () => health.live(),
    ready: () => health.ready(),
  })
  await open('metricsAddress', settings.metricsAddress, { registry })
  return servers
}

/** Fails so long after it was asked to end. */
async function tooLate(asked: Promise<void>): Promise<never> {
  await asked
  await sleep(GRACE, undefined, { ref: false })
  throw new PosternError('StopTimeout', `did not end within ${GRACE / 1000} s of being asked to`)
}

/** A fault in our own code is one line of the log, like everything else, and the end. */
function endOnFault(log: Logger): void {
  process.on('uncaughtException', (error) => {
    log.error({ error: messageOf(error), stack: error.stack }, 'unexpected fault')
    process.exit(Exit.failed)
  })
}
