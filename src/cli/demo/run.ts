import { join } from 'node:path'
import { startTorNetwork } from '../../../testbed/tor-network/network.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { findCondition } from '../../core/conditions.ts'
import { PosternError } from '../../core/errors.ts'
import { keyFor, type Resource } from '../../core/resource.ts'
import { DEFAULT_DAEMON } from '../../tor/api/group.ts'
import { ONION_SERVICE } from '../../tor/api/onion-service.ts'
import { DaemonCondition, OnionCondition } from '../../tor/api/reasons.ts'
import { TOR_DAEMON } from '../../tor/api/tor-daemon.ts'
import { startEmbedded } from '../compose.ts'
import { fileLogger } from '../log.ts'
import { DEFAULT_NAMESPACE } from '../objects.ts'
import { requireProgram } from '../programs.ts'
import type { Progress } from '../progress.ts'
import { ROOT } from '../version.ts'
import { waitFor } from '../wait.ts'
import { conditionsOf, openConditions } from './conditions.ts'
import { fetchEventually } from './fetch.ts'
import { claimDemoFolder } from './folder.ts'
import { SITE_PORT, writeManifests } from './manifests.ts'
import { type DemoReport, failed, rounded, type StepTime, succeeded } from './report.ts'
import { startSite } from './site-server.ts'

export interface DemoOptions {
  state: string
  progress: Progress
  /** Ends the demo, at whatever step it is. */
  signal: AbortSignal
  /** Called once the page was fetched; the demo ends when it resolves. */
  whileItRuns(visit: Visit): Promise<void>
}

/** How the running demo is reached. */
export interface Visit {
  onion: string
  socksPort: number
  manifests: string
}

const EXAMPLE = join(ROOT, 'examples', 'onion-site')
const ONION = keyFor(DEFAULT_NAMESPACE, 'web')
const DAEMON = keyFor(DEFAULT_NAMESPACE, DEFAULT_DAEMON)
/** Milliseconds that a step may take; on a machine of 2 cores all of them together take about 20 s. */
const LIMIT = 120_000

/**
 * A private Tor network, the example on it, and a page fetched through its onion. Whatever happens, everything that
 * was started has ended when this resolves.
 *
 * @throws only for what is wrong before the first step: the state folder, a missing program
 */
export async function runDemo(options: DemoOptions): Promise<DemoReport> {
  const { state, progress, signal } = options
  requireProgram('tor', 'tor')
  const lock = claimDemoFolder(state)
  await using stack = new AsyncDisposableStack()
  stack.defer(() => lock.release())
  const log = fileLogger(join(state, 'postern.log'), 'debug')
  const steps: StepTime[] = []
  let current: string | undefined
  let started = 0
  let cluster: Cluster | undefined

  /** One step, timed and shown. @param done what is said of it afterwards */
  const step = async <T>(
    name: string,
    doing: string,
    work: () => Promise<T>,
    done: (result: T) => string,
  ): Promise<T> => {
    signal.throwIfAborted()
    current = name
    started = performance.now()
    progress.begin(name, doing)
    const result = await work()
    const seconds = elapsed(started)
    steps.push({ name, seconds })
    progress.end(true, done(result), seconds)
    current = undefined
    return result
  }
  const condition = (
    kind: typeof ONION_SERVICE | typeof TOR_DAEMON,
    key: string,
    type: string,
  ): Promise<string> =>
    waitFor(
      cluster!.cache<Resource>(kind),
      key,
      (object) => {
        const found = findCondition(conditionsOf(object), type)
        if (found !== undefined && found.status !== 'True') progress.detail(found.message || found.reason)
        return found?.status === 'True' ? found.message || found.reason : undefined
      },
      { limit: LIMIT, signal },
    )

  try {
    const network = await step(
      'network',
      'a private Tor network on loopback',
      async () => {
        const limit = AbortSignal.timeout(LIMIT)
        return startTorNetwork({
          state: join(state, 'net'),
          signal: AbortSignal.any([signal, limit]),
          onStep: (name, detail) => progress.detail([name, detail].filter(Boolean).join(' ')),
        })
      },
      () => 'a private Tor network on loopback',
    )
    stack.defer(() => network.stop())
    const site = await startSite(join(EXAMPLE, 'site'), SITE_PORT)
    stack.defer(() => site.close())
    const manifests = join(state, 'manifests')
    writeManifests({ from: EXAMPLE, to: manifests, sitePort: site.port, torOptions: { ...network.options } })

    const hostname = await step(
      'key',
      'the manifests are applied, and the onion gets its key',
      async () => {
        const running = await startEmbedded({
          folder: manifests,
          state,
          lock,
          log,
          onProblem: (problem) => progress.detail(problem),
        })
        stack.defer(() => running.close())
        cluster = running.cluster
        return waitFor(cluster.cache(ONION_SERVICE), ONION, (onion) => onion.status?.hostname, {
          limit: LIMIT,
          signal,
        })
      },
      (name) => name,
    )
    await step(
      'bootstrap',
      'the daemon starts tor',
      () => condition(TOR_DAEMON, DAEMON, DaemonCondition.TorBootstrapped),
      () => `tor is part of the network`,
    )
    await step(
      'descriptor',
      'tor makes circuits, and uploads where to find the onion',
      () => condition(ONION_SERVICE, ONION, OnionCondition.Published),
      () => 'uploaded: the onion can be found',
    )
    await step(
      'fetch',
      `GET http://${hostname}/`,
      async () => {
        const page = await fetchEventually({
          socksPort: network.socksPort,
          host: hostname,
          limit: LIMIT,
          signal,
          onRetry: (reason) => {
            progress.detail(reason)
            log.info({ reason }, 'no page yet')
          },
        })
        if (page.status !== 200)
          throw new PosternError('DemoFailed', `the page came with status ${page.status}`)
        return page.body.length
      },
      (bytes) => `a page of ${bytes} bytes came through the onion`,
    )
    await options.whileItRuns({ onion: hostname, socksPort: network.socksPort, manifests })
    return succeeded(hostname, steps)
  } catch (error) {
    if (current !== undefined)
      progress.end(false, signal.aborted ? 'stopped' : 'did not end well', elapsed(started))
    return failed(error, current, steps, cluster === undefined ? [] : openConditions(cluster))
  }
}

function elapsed(since: number): number {
  return rounded((performance.now() - since) / 1000)
}
