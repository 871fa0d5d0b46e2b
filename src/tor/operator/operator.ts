import type { Cluster } from '../../cluster/cluster.ts'
import { type ReportSource, Reports } from '../../cluster/reports.ts'
import { type Controller, runController } from '../../controller/runner.ts'
import type { Logger } from '../../core/logger.ts'
import { keyFor, keyOf, splitKey } from '../../core/resource.ts'
import { REPORT_PORT, type TorReport } from '../contract.ts'
import { guardReport } from '../report-guard.ts'
import { gather } from './gather.ts'
import { keysName } from './names.ts'
import type { Observed, TorSettings } from './observed.ts'
import { plan } from './plan.ts'
import { identityOf } from './workload.ts'
import {
  AddressBook,
  addressOf,
  BY_SECRET,
  BY_SERVICE,
  daemonKey,
  instanceKeys,
  openWorld,
  podOf,
  type World,
} from './world.ts'

/*
 * One controller for the domain, by daemon: everything that is bound to a daemon ends in its one topology.
 *
 *   OnionService ─┐                            ┌─ keys Secret, topology ConfigMap
 *   OnionProxy ───┤→ key of the daemon → plan ─┼─ Deployment, Services
 *   TorDaemon ────┤                            └─ status of all of them
 *   Secret, Service, EndpointSlice, Pod, report ┘
 */

export interface TorOperatorOptions {
  cluster: Cluster
  settings: TorSettings
  log: Logger
}

/** Starts the controllers of the tor kinds; resolves once their caches are warm. */
export async function runTorOperator(options: TorOperatorOptions): Promise<{ close(): Promise<void> }> {
  const { cluster, settings, log } = options
  const world = openWorld(cluster)
  await world.ready
  const book = new AddressBook()
  let enqueue: (key: string) => void = () => {}
  const reports = new Reports<TorReport>(guardReport, (key) => enqueue(key))
  const controller: Controller<Observed> = {
    name: 'postern/tor',
    gather: (key) => gather(world, book, reports.get(key), settings, key),
    plan,
    watch(add) {
      enqueue = add
      return watchWorld(world, book, reports, add)
    },
  }
  const runner = runController(cluster, controller, { log })
  return {
    close() {
      reports.close()
      return runner.close()
    },
  }
}

function watchWorld(
  world: World,
  book: AddressBook,
  reports: Reports<TorReport>,
  add: (key: string) => void,
): () => void {
  /** Notes an onion's address and wakes the daemons of all that share it, or did. */
  const noteAddress = (onionKey: string): void => {
    const onion = world.onions.get(onionKey)
    for (const other of book.set(onionKey, onion === undefined ? undefined : addressOf(world, onion))) {
      const object = world.onions.get(other)
      if (object !== undefined) add(daemonKey(object))
    }
  }
  const follow = (key: string): void => reports.follow(key, sourceOf(world, key))
  const stops = [
    world.daemons.subscribe(({ key }) => add(key)),
    world.onions.subscribe(({ key, before, after }) => {
      noteAddress(key)
      if (before !== undefined) add(daemonKey(before))
      if (after !== undefined) add(daemonKey(after))
    }),
    world.proxies.subscribe(({ before, after }) => {
      if (before !== undefined) add(daemonKey(before))
      if (after !== undefined) add(daemonKey(after))
    }),
    world.secrets.subscribe(({ key }) => {
      for (const onion of world.onions.by(BY_SECRET, key)) {
        noteAddress(keyOf(onion))
        add(daemonKey(onion))
      }
      const { namespace, name } = splitKey(key)
      if (name.endsWith(keysName({ namespace, name: '' }))) {
        const daemon = keyFor(namespace, name.slice(0, -keysName({ namespace, name: '' }).length))
        follow(daemon)
        add(daemon)
      }
    }),
    world.services.subscribe(({ key, before, after }) => {
      for (const onion of world.onions.by(BY_SERVICE, key)) add(daemonKey(onion))
      for (const service of [before, after]) {
        for (const daemon of service === undefined ? [] : instanceKeys(service)) add(daemon)
      }
      const proxy = world.proxies.get(key)
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
    world.pods.subscribe(({ before, after }) => {
      for (const pod of [before, after]) {
        for (const daemon of pod === undefined ? [] : instanceKeys(pod)) {
          follow(daemon)
          add(daemon)
        }
      }
    }),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

/** Where the agent of a daemon reports, once its pod has an address and its keys are there. */
function sourceOf(world: World, key: string): ReportSource | undefined {
  const { namespace, name } = splitKey(key)
  const host = podOf(world, key)?.status?.podIP
  const identity = identityOf(world.secrets.get(keyFor(namespace, keysName({ namespace, name }))))
  if (host === undefined || identity === undefined) return undefined
  return { host, port: REPORT_PORT, certificate: identity.certificate, token: identity.token }
}
