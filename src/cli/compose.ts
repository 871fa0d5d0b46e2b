import { join } from 'node:path'
import type { Cluster } from '../cluster/cluster.ts'
import { EmbeddedCluster } from '../cluster/embedded/cluster.ts'
import { type FolderChange, ManifestFolder } from '../cluster/embedded/folder.ts'
import { lockState, type StateLock } from '../cluster/embedded/lock.ts'
import { PodRunner } from '../cluster/embedded/pods.ts'
import { Store } from '../cluster/embedded/store.ts'
import { KUBERNETES_KINDS } from '../cluster/kinds.ts'
import type { Logger } from '../core/logger.ts'
import { TOR_KINDS } from '../tor/api/kinds.ts'
import type { TorSettings } from '../tor/operator/observed.ts'
import { runTorOperator } from '../tor/operator/operator.ts'
import { MANIFEST_KINDS } from './manifest-kinds.ts'
import { searchPath } from './programs.ts'
import { ROOT } from './version.ts'

export interface EmbeddedOptions {
  /** With the manifests. */
  folder: string
  /** State folder; at most 64 bytes long, since unix sockets stand below it. */
  state: string
  /** Told once of each mistake in a manifest: file, line, field, and what must be. */
  onProblem(problem: string): void
  onChange?(change: FolderChange): void
  log: Logger
  /** Held already by the caller, who then releases it. */
  lock?: StateLock
}

export interface Running {
  readonly cluster: Cluster
  /** Ends everything in the order that keeps the objects true; again is the same promise. */
  close(): Promise<void>
}

/** The programs that our pods name, as they are started on this machine. */
const PROGRAMS: Record<string, string[]> = {
  'postern-tor-agent': [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    '--max-semi-space-size=2',
    '--max-old-space-size=64',
    join(ROOT, 'src', 'tor', 'agent', 'main.ts'),
  ],
}

/** What is different on one machine: no kubelet, no firewall, no second node to move to. */
export const EMBEDDED_SETTINGS: TorSettings = {
  loopbackBackends: true,
  serviceDns: false,
  image: 'postern-tor',
  lingerSeconds: 0,
  volumesLag: false,
  companions: false,
  networkPolicies: false,
}

/**
 * Everything that a cluster does, in this process and its children: store, controllers, pods, manifests.
 *
 * @throws PosternError `StateInUse`, `StatePathTooLong`, `LeftoverProcesses`, `Storage…`; nothing stays behind then
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Running> {
  const { folder, state, onProblem, onChange, log } = options
  const steps: (() => Promise<void> | void)[] = []
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= (async () => {
      for (const step of steps.reverse()) {
        try {
          await step()
        } catch (error) {
          log.error({ error: String(error) }, 'could not end in order')
        }
      }
    })()
    return closing
  }
  try {
    if (options.lock === undefined) {
      const lock = lockState(state)
      steps.push(() => lock.release())
    }
    const store = new Store(state)
    steps.push(() => store.close())
    const cluster = new EmbeddedCluster(store, [...KUBERNETES_KINDS, ...TOR_KINDS])
    steps.push(() => cluster.close())
    const cache = process.env.NODE_COMPILE_CACHE
    const env = {
      PATH: searchPath(),
      LANG: process.env.LANG ?? 'C.UTF-8',
      // Without it each agent keeps the type stripper in memory.
      ...(cache === undefined ? {} : { NODE_COMPILE_CACHE: cache }),
    }
    const pods = new PodRunner({ cluster, state, programs: PROGRAMS, log, env })
    steps.push(() => pods.close())
    // Before the controllers, so that nothing of an earlier run is alive when they first look.
    await pods.start()
    const manifests = new ManifestFolder({
      folder,
      store,
      kinds: MANIFEST_KINDS,
      onProblem: (problem) => onProblem(problem.text),
      ...(onChange === undefined ? {} : { onChange }),
    })
    steps.push(() => manifests.close())
    // Before the controllers, too: they begin with the whole picture, and their first plan is the right one.
    await manifests.start()
    const operator = await runTorOperator({
      cluster,
      settings: EMBEDDED_SETTINGS,
      log,
    })
    // First the controllers, or they would answer to the end of the pods.
    steps.push(() => operator.close())
    return { cluster, close }
  } catch (error) {
    await close()
    throw error
  }
}
