import type { Cluster } from '../../cluster/cluster.ts'
import { type ReportSource, Reports } from '../../cluster/reports.ts'
import type { Failure } from '../../controller/applier.ts'
import type { QueueOptions } from '../../controller/queue.ts'
import { type Controller, type Runner, runController } from '../../controller/runner.ts'
import type { Logger } from '../../core/logger.ts'
import { keyFor, keyOf, type Resource, splitKey } from '../../core/resource.ts'
import type { OnionProxy } from '../api/onion-proxy.ts'
import type { OnionService } from '../api/onion-service.ts'
import { REPORT_PORT, type TorReport } from '../contract.ts'
import { guardReport } from '../report-guard.ts'
import { BridgeFetches } from './bridge-fetches.ts'
import { FETCH_CALL } from './bridges.ts'
import { isClientSecret } from './client-keys.ts'
import { gather } from './gather.ts'
import { identityOf } from './mounts.ts'
import type { Declared } from './named-secrets.ts'
import { keysName } from './names.ts'
import type { Observed, TorSettings } from './observed.ts'
import { plan } from './plan.ts'
import { Probers } from './probers.ts'
import { Retirement } from './retirement.ts'
import { followSecrets, namers, userSecretsRead } from './user-secrets.ts'
import {
  AddressBook,
  addressOf,
  BY_INSTANCE,
  BY_SERVICE,
  daemonKey,
  instanceKeys,
  onionsOfSecret,
  openWorld,
  podOf,
  type World,
} from './world.ts'

/*
 * One controller for the domain, by daemon: everything that is bound to a daemon ends in its one topology.
 *
 *   OnionService ─┐                            ┌─ keys Secret, topology ConfigMap
 *   OnionProxy ───┤→ key of the daemon → plan ─┼─ Deployment, Services, what stands beside them
 *   TorDaemon ────┤                            ├─ status of all of them
 *   Secret, Service, EndpointSlice, Pod, report ┘└─ pods: look at your mounts; you are not needed any more
 */

export interface TorOperatorOptions {
  cluster: Cluster
  settings: TorSettings
  log: Logger
  queue?: QueueOptions
}

/** What is known beside the objects, and how it is learnt. */
interface Knowledge {
  book: AddressBook
  reports: Reports<TorReport>
  retirement: Retirement
  probers: Probers
}

/** Controllers whose caches are warm, but that do nothing before they are started. */
export interface PreparedTorOperator {
  start(): void
  close(): Promise<void>
}

/** Warms the caches of the tor kinds; resolves once they are. */
export async function prepareTorOperator(options: TorOperatorOptions): Promise<PreparedTorOperator> {
  const { cluster, settings, log } = options
  const world = openWorld(cluster, settings)
  await world.ready
  await userSecretsRead(world)
  let enqueue: (key: string) => void = () => {}
  let runner: Runner | undefined
  const reports = new Reports<TorReport>(guardReport, (key) => {
    probers.heard(key, reports.get(key))
    enqueue(key)
  })
  const probers = new Probers({
    enqueue: (key) => enqueue(key),
    daemonOf(key) {
      const onion = world.onions.get(key)
      return onion === undefined ? undefined : daemonKey(onion)
    },
  })
  const retirement = new Retirement((source) => reports.retire(source), log)
  const fetches = new BridgeFetches(log, (key) => enqueue(key))
  const knowledge: Knowledge = { book: new AddressBook(), reports, retirement, probers }
  const refused = new Map<string, readonly Failure[]>()
  const controller: Controller<Observed> = {
    name: 'postern/tor',
    gather(key) {
      const fetched = fetches.result(key)
      const memory = {
        view: reports.get(key),
        refused: refused.get(key) ?? [],
        fetched,
        probers,
        viewOf: (daemon: string) => reports.get(daemon),
      }
      return gather(world, knowledge.book, memory, settings, key)
    },
    plan,
    outcome(key, failures) {
      const before = refused.get(key)
      if (failures.length === 0) refused.delete(key)
      else refused.set(key, failures)
      // What is said of it follows from it, so it is planned once more.
      if (signature(before) !== signature(failures)) enqueue(key)
    },
    async call(call) {
      if (call.name === FETCH_CALL) fetches.call(call)
      else await retirement.call(call)
    },
    watch(add) {
      enqueue = add
      return watchWorld(world, knowledge, add)
    },
  }
  return {
    start() {
      runner ??= runController(cluster, controller, { log, ...options.queue })
    },
    async close() {
      reports.close()
      probers.close()
      await fetches.close()
      await runner?.close()
    },
  }
}

/** Starts the controllers of the tor kinds; resolves once their caches are warm. */
export async function runTorOperator(options: TorOperatorOptions): Promise<PreparedTorOperator> {
  const prepared = await prepareTorOperator(options)
  prepared.start()
  return prepared
}

function signature(failures: readonly Failure[] = []): string {
  return failures.map(({ ref, code, message }) => `${ref.kind} ${ref.name} ${code} ${message}`).join('\n')
}

function watchWorld(world: World, knowledge: Knowledge, add: (key: string) => void): () => void {
  const { book, reports, retirement, probers } = knowledge
  /** Notes an onion's address and wakes the daemons of all that share it, or did. */
  const noteAddress = (onionKey: string): void => {
    const onion = world.onions.get(onionKey)
    for (const other of book.set(onionKey, onion === undefined ? undefined : addressOf(world, onion))) {
      const object = world.onions.get(other)
      if (object !== undefined) add(daemonKey(object))
    }
  }
  const follow = (key: string): void => reports.follow(key, sourceOf(world, key))
  const keyChanged = (secret: string): void => {
    for (const onion of onionsOfSecret(world, secret)) {
      noteAddress(keyOf(onion))
      add(daemonKey(onion))
    }
  }
  const instanceChanged = ({ before, after }: { before?: Resource; after?: Resource }): void => {
    for (const object of [before, after]) {
      for (const daemon of object === undefined ? [] : instanceKeys(object)) add(daemon)
    }
  }
  const stops = [
    world.userSecrets.subscribe((secret) => {
      keyChanged(secret)
      for (const object of namers(world, secret)) add(daemonOf(object))
    }),
    world.daemons.subscribe(({ key, before, after }) => {
      followSecrets(world, before, after)
      probers.daemon(key, after)
      add(key)
    }),
    world.onions.subscribe(({ key, before, after }) => {
      followSecrets(world, before, after)
      noteAddress(key)
      if (before !== undefined) add(daemonKey(before))
      if (after !== undefined) add(daemonKey(after))
      const bound = before ?? after
      if (bound !== undefined) probers.onion(before, after, daemonKey(bound))
    }),
    world.proxies.subscribe(({ before, after }) => {
      followSecrets(world, before, after)
      if (before !== undefined) add(daemonKey(before))
      if (after !== undefined) add(daemonKey(after))
    }),
    world.secrets.subscribe(({ key, before, after }) => {
      keyChanged(key)
      for (const { uid } of (after ?? before)?.metadata.ownerReferences ?? []) {
        // The Secret of a client: rare, so that a look at all onions of the namespace is cheap enough.
        if (!isClientSecret((after ?? before)!)) break
        const onions = world.onions.list((after ?? before)?.metadata.namespace)
        const onion = onions.find((one) => one.metadata.uid === uid)
        if (onion !== undefined) add(daemonKey(onion))
      }
      const { namespace, name } = splitKey(key)
      if (name.endsWith(keysName({ namespace, name: '' }))) {
        const daemon = keyFor(namespace, name.slice(0, -keysName({ namespace, name: '' }).length))
        const identity = identityOf(after)
        if (identity !== undefined) retirement.know(daemon, identity)
        follow(daemon)
        add(daemon)
      }
    }),
    world.services.subscribe((change) => {
      for (const onion of world.onions.by(BY_SERVICE, change.key)) add(daemonKey(onion))
      instanceChanged(change)
      const proxy = world.proxies.get(change.key)
      if (proxy !== undefined) add(daemonKey(proxy))
    }),
    world.slices.subscribe(({ before, after }) => {
      for (const slice of [before, after]) {
        const service = slice?.metadata.labels?.['kubernetes.io/service-name']
        if (slice === undefined || service === undefined) continue
        const key = keyFor(slice.metadata.namespace, service)
        for (const onion of world.onions.by(BY_SERVICE, key)) add(daemonKey(onion))
      }
    }),
    world.pods.subscribe((change) => {
      for (const pod of [change.before, change.after]) {
        for (const daemon of pod === undefined ? [] : instanceKeys(pod)) {
          follow(daemon)
          const gone = world.pods.by(BY_INSTANCE, daemon).length === 0
          if (gone && !world.daemons.get(daemon)) retirement.forget(daemon)
        }
      }
      instanceChanged(change)
    }),
    ...[world.configMaps, world.claims, ...world.made].map((cache) => cache.subscribe(instanceChanged)),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

/** Key of the daemon that an object is bound to, or is. */
function daemonOf(object: Declared): string {
  return object.kind === 'TorDaemon' ? keyOf(object) : daemonKey(object as OnionService | OnionProxy)
}

/** Where the agent of a daemon reports, once its pod has an address and its keys are there. */
function sourceOf(world: World, key: string): ReportSource | undefined {
  const { namespace, name } = splitKey(key)
  const host = podOf(world.pods.by(BY_INSTANCE, key))?.status?.podIP
  const identity = identityOf(world.secrets.get(keyFor(namespace, keysName({ namespace, name }))))
  if (host === undefined || identity === undefined) return undefined
  return { host, port: REPORT_PORT, certificate: identity.certificate, token: identity.token }
}
