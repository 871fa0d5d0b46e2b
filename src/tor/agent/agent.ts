import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { ProbeServer } from '../../agent/probe-server.ts'
import { ReportServer } from '../../agent/report-server.ts'
import { Revisions } from '../../agent/revisions.ts'
import { type FolderContent, FolderWatcher } from '../../agent/watcher.ts'
import { messageOf } from '../../core/errors.ts'
import {
  METRICS_PORT,
  type ProxyTarget,
  REPORT_CERTIFICATE_FILE,
  REPORT_KEY_FILE,
  REPORT_PORT,
  REPORT_TOKEN_FILE,
  REPORT_VERSION,
  type TargetState,
  TOPOLOGY_FILE,
  type TorReport,
  type TorState,
  type TorTopology,
} from '../contract.ts'
import type { ControlClient } from '../control/client.ts'
import { parseTopology } from '../topology-guard.ts'
import { AccessPorts } from './access-ports.ts'
import type { TorAgentOptions } from './agent-options.ts'
import { Backends } from './backends.ts'
import { Bridges } from './bridges.ts'
import { ClientAuths } from './client-auths.ts'
import { Departure } from './departure.ts'
import { FirstPublication } from './first-publication.ts'
import { type KeptState, keptState } from './kept-state.ts'
import { runningMetrics } from './metrics.ts'
import { OnionKeys } from './onion-keys.ts'
import { OnionSet } from './onion-set.ts'
import { Outage } from './outage.ts'
import { privateFolder } from './private-folder.ts'
import { targetsOf, visits } from './probe-visit.ts'
import { Probes } from './probes.ts'
import { Proxies } from './proxies.ts'
import { Renewals } from './renewals.ts'
import { targetState } from './target-state.ts'
import { TorProcess } from './tor-process.ts'
import { ownSocksPorts, type TorPaths, torPaths } from './torrc.ts'
import { UploadCircuits } from './upload-circuits.ts'
import { Watch } from './watch.ts'

export type { TorAgentOptions } from './agent-options.ts'

/** Counters that change all the time reach the report at least this often. */
const REFRESH_MS = 15_000

/** Everything that one pod does: from two mounted folders to a tor that serves them, and a report of it. */
export class TorAgent {
  readonly #options: TorAgentOptions
  readonly #report: Revisions<Omit<TorReport, 'revision'>>
  readonly #keys = new OnionKeys()
  readonly #backends: Backends
  readonly #onions: OnionSet
  readonly #proxies: Proxies
  readonly #probes: Probes
  readonly #watch: Watch
  readonly #renewals: Renewals
  readonly #clientAuths: ClientAuths
  readonly #bridges: Bridges
  readonly #outage: Outage
  readonly #access: AccessPorts
  readonly #kept: KeptState | undefined
  readonly #tor: TorProcess
  readonly #reportServer: ReportServer
  readonly #probeServer: ProbeServer
  readonly #watchers: FolderWatcher[]
  readonly #refresh: NodeJS.Timeout
  readonly #uploadCircuits: UploadCircuits
  readonly #firstPublication = new FirstPublication()
  readonly #departure: Departure
  #leaving = false
  #closing: Promise<void> | undefined
  readonly #problems = new Map<'topology' | 'keys' | 'keep', string>()
  #topology: TorTopology | undefined
  #applied = ''

  private constructor(options: TorAgentOptions, paths: TorPaths) {
    this.#options = options
    const { log, address: host } = options
    const onChange = (): void => this.#report?.touch()
    this.#backends = new Backends({ folder: paths.onions, log, onChange })
    this.#onions = new OnionSet({
      folder: paths.folders,
      keys: this.#keys,
      backends: this.#backends,
      log,
      onChange,
      onHung: () => this.#tor.kill(),
    })
    this.#proxies = new Proxies({ host, socks: paths.socks, log, onChange })
    this.#probes = new Probes({ onChange, attempt: visits(paths) })
    const control = (): ControlClient | undefined => this.#tor.worker
    this.#watch = new Watch({ paths, control, log, onChange })
    this.#renewals = new Renewals({ control, restart: () => this.#tor.restart(), log })
    this.#clientAuths = new ClientAuths({ log, onChange: (onion) => this.#probes.again(onion) })
    this.#bridges = new Bridges({
      log,
      network: options.network ?? true,
      onChange: () => {
        onChange()
        // Ports are open only while the network is on.
        void this.#access?.look()
      },
      onRecovered: () => this.#outage.over(),
      ...(options.programs === undefined ? {} : { programs: options.programs }),
      ...(options.bridgesEveryMs === undefined ? {} : { everyMs: options.bridgesEveryMs }),
    })
    this.#outage = new Outage({
      log,
      control: () => (this.#leaving ? undefined : this.#tor.worker),
      onForgotten: () => this.#onions.check(),
    })
    this.#access = new AccessPorts({ host, socks: ownSocksPorts(paths), log, onChange })
    const onProblem = (text: string | undefined): void => this.#problem('keep', text)
    this.#kept = keptState(options.keep, { state: join(paths.data, 'state'), log, onProblem })
    this.#tor = new TorProcess({
      tor: options.tor ?? 'tor',
      paths,
      openNetwork: (control) => this.#bridges.attach(control),
      redact: (line) => this.#bridges.redact(line),
      log,
      ...(options.silenceMs === undefined ? {} : { silenceMs: options.silenceMs }),
      onChange: () => {
        const bootstrapped = this.#tor !== undefined && this.#torState().bootstrapped
        if (bootstrapped) this.#onions.bootstrapped()
        this.#probes.enable(bootstrapped)
        this.#watch.enable(bootstrapped && !this.#leaving)
        onChange()
      },
      onAttached: (control, fresh) => {
        this.#clientAuths.attach(control, fresh)
        this.#onions.attach(control, fresh)
        this.#access.attach(control)
      },
      onDetached: (died) => {
        this.#bridges.detach(died)
        this.#clientAuths.detach()
        this.#onions.detach(died)
        this.#access.detach()
        // Its onions would not be published again.
        if (died && this.#leaving) this.#departure.end()
      },
      onEvent: (event) => {
        this.#bridges.event(event)
        if (event.type !== 'HS_DESC') return
        this.#onions.event(event)
        if (event.action === 'UPLOAD') this.#uploadCircuits.asked()
      },
    })
    this.#uploadCircuits = new UploadCircuits(() => this.#tor.worker)
    this.#departure = new Departure({
      lingerMs: options.lingerMs ?? 0,
      streams: () => this.#backends.connections + this.#proxies.connections + this.#access.streams,
      circuits: async () => {
        await this.#access.count(this.#proxies.connections)
        return (await this.#tor.worker?.getInfo('circuit-status'))?.['circuit-status']
      },
      withdraw: (visited, held) => this.#onions.withdraw(visited, held),
      log,
    })
    this.#report = new Revisions(() => this.#build())
    this.#reportServer = new ReportServer({
      host,
      port: options.reportPort ?? REPORT_PORT,
      report: this.#report,
      log,
      onRetire: () => {
        log.info({ leaving: this.#leaving }, 'agent is retired')
        this.#departure.retire()
      },
    })
    this.#probeServer = new ProbeServer({
      host,
      port: options.metricsPort ?? METRICS_PORT,
      live: () => this.#tor.stuck,
      ready: () => this.#unready(),
      registry: runningMetrics(() => this.#report.value, {
        host,
        control: () => this.#tor.worker,
        addresses: () => this.#topology?.daemon.metrics?.addresses === true,
        traffic: (address) => this.#backends.traffic(address),
        log,
      }),
    })
    this.#watchers = [
      new FolderWatcher({
        folder: options.keys,
        onContent: (content) => this.#useKeys(content),
        onError: (error) => this.#problem('keys', `the keys cannot be read: ${messageOf(error)}`),
      }),
      new FolderWatcher({
        folder: options.topology,
        onContent: (content) => this.#useTopology(content),
        onError: (error) => this.#problem('topology', `the topology cannot be read: ${messageOf(error)}`),
      }),
    ]
    this.#refresh = setInterval(onChange, REFRESH_MS)
    this.#refresh.unref()
  }

  /**
   * Starts an agent; resolves once it has looked at both folders.
   *
   * @throws errors of the file system, and of a port that is taken
   */
  static async start(options: TorAgentOptions): Promise<TorAgent> {
    const run = await privateFolder(options.run)
    const data = await privateFolder(options.data, { keep: true })
    const agent = new TorAgent(options, torPaths(data, run))
    await agent.#kept?.start()
    await agent.#probeServer.listen()
    for (const watcher of agent.#watchers) await watcher.start()
    return agent
  }

  /** The newest snapshot of the report. */
  get report(): Omit<TorReport, 'revision'> {
    return this.#report.value
  }

  /** Ports that are listened on; the report's only once there are credentials. */
  get ports(): { report: number | undefined; metrics: number | undefined } {
    return { report: this.#reportServer.port, metrics: this.#probeServer.port }
  }

  /**
   * Ends as a pod does that others depend on. While a successor may be on its way, everything is served as before,
   * but no descriptor is published any more; see {@link Departure} for when that ends. Without a linger, or with
   * nothing that anybody could be using, it is `close`.
   *
   * @param graceMs of that `close`
   */
  async leave(graceMs = 0): Promise<void> {
    if (!this.#inUse()) return this.close(graceMs)
    this.#leaving = true
    for (const watcher of this.#watchers) watcher.close()
    this.#onions.stop()
    this.#tor.stopPublishing()
    this.#watch.close()
    this.#report.touch()
    await this.#kept?.close()
    this.#options.log.info({}, 'agent leaves: it serves on until a successor does')
    await this.#departure.run()
    await this.close()
  }

  /** Accepts nothing more, gives running connections the grace to end, and ends tor. */
  close(graceMs = 0): Promise<void> {
    this.#departure.end()
    this.#closing ??= this.#close(graceMs)
    return this.#closing
  }

  async #close(graceMs: number): Promise<void> {
    for (const watcher of this.#watchers) watcher.close()
    clearInterval(this.#refresh)
    this.#probes.close()
    this.#watch.close()
    this.#clientAuths.close()
    this.#bridges.close()
    this.#access.close()
    this.#outage.close()
    this.#uploadCircuits.close()
    this.#onions.stop()
    await Promise.all([this.#proxies.close(graceMs), this.#backends.close(graceMs)])
    await this.#tor.stop()
    await this.#kept?.close()
    // Only now: a step may have waited for a tor that did not answer.
    await this.#onions.idle()
    await this.#backends.close(0)
    await Promise.all([this.#reportServer.close(), this.#probeServer.close()])
    this.#report.close()
  }

  async #useKeys({ files }: FolderContent): Promise<void> {
    this.#keys.use(files)
    this.#clientAuths.use(files)
    this.#bridges.use(files)
    this.#onions.keysChanged()
    const certificate = files.get(REPORT_CERTIFICATE_FILE)
    const key = files.get(REPORT_KEY_FILE)
    const token = files.get(REPORT_TOKEN_FILE)
    try {
      if (certificate === undefined || key === undefined || token === undefined) {
        const names = [REPORT_CERTIFICATE_FILE, REPORT_KEY_FILE, REPORT_TOKEN_FILE].join(', ')
        return this.#problem('keys', `the report cannot be served anew: the keys must hold ${names}`)
      }
      await this.#reportServer.use({ certificate, key, token })
      this.#problem('keys', undefined)
    } catch (error) {
      this.#problem('keys', messageOf(error))
    }
  }

  async #useTopology({ files }: FolderContent): Promise<void> {
    const document = files.get(TOPOLOGY_FILE)
    if (document === undefined) {
      return this.#problem('topology', `there is no ${TOPOLOGY_FILE}; what was in force stays so`)
    }
    let topology: TorTopology
    try {
      topology = parseTopology(document.toString('utf8'))
    } catch (error) {
      return this.#problem('topology', messageOf(error))
    }
    this.#topology = topology
    // Before tor may start: it must not be let onto the network without them.
    this.#bridges.want(topology.daemon.bridges)
    this.#tor.configure(topology.daemon)
    this.#renewals.daemon(topology.daemon)
    this.#onions.want(this.#renewals.onions(topology.onions))
    this.#clientAuths.want(topology.proxies)
    this.#probes.want(targetsOf(topology.proxies))
    this.#watch.want(topology.watch ?? [])
    this.#access.want(topology.daemon.access)
    await this.#proxies.want(topology.proxies)
    this.#applied = createHash('sha256').update(document).digest('hex')
    this.#options.log.info({ applied: this.#applied, onions: topology.onions.length }, 'topology in force')
    this.#problem('topology', undefined)
  }

  #problem(of: 'topology' | 'keys' | 'keep', text: string | undefined): void {
    if (text === undefined) this.#problems.delete(of)
    else {
      this.#problems.set(of, text)
      this.#options.log.warn({ of, problem: text }, 'what was mounted cannot be used')
    }
    this.#report.touch()
  }

  #inUse(): boolean {
    const { tor, onions, targets, access = [] } = this.#report.value
    if ((this.#options.lingerMs ?? 0) === 0 || !tor.running) return false
    if (!tor.bootstrapped && this.#options.network !== false) return false
    const added = onions.some(({ state }) => state === 'published' || state === 'added')
    return added || [...targets, ...access].some(({ listening }) => listening)
  }

  #unready(): string | undefined {
    const { tor, applied, onions } = this.#report.value
    if (applied === '') return 'there is no usable topology yet'
    if (!tor.running) return tor.message ?? 'tor does not run yet'
    if (this.#bridges.problem !== undefined) return this.#bridges.problem.message
    if (this.#options.network === false) return undefined
    if (!tor.bootstrapped) return `tor bootstraps: ${tor.progress} %, ${tor.summary ?? 'starting'}`
    return this.#firstPublication.pending(onions, performance.now())
  }

  #build(): Omit<TorReport, 'revision'> {
    const onions = this.#onions.states()
    const tor = this.#torState()
    this.#firstPublication.look(tor.bootstrapped, onions, performance.now())
    const problems = [...this.#problems.values(), ...this.#tor.rejected, ...this.#bridges.rejected]
    const rejected = problems.join('; ').slice(0, 4000)
    const bridges = this.#bridges.states
    const access = this.#access.states
    const watched = this.#watch.states
    return {
      version: REPORT_VERSION,
      applied: this.#applied,
      ...(rejected === '' ? {} : { rejected }),
      ...(this.#leaving ? { leaving: true } : {}),
      tor,
      ...(bridges === undefined ? {} : { bridges }),
      ...(access === undefined ? {} : { access }),
      ...(watched === undefined ? {} : { watched }),
      onions,
      targets: (this.#topology?.proxies ?? []).flatMap((proxy) =>
        proxy.targets.map((target) => this.#target(proxy.name, target)),
      ),
    }
  }

  /** A tor that runs and is kept off the network says so, whatever it has been before. */
  #torState(): TorState {
    const { state } = this.#tor
    const { problem } = this.#bridges
    return state.running && problem !== undefined ? { ...state, bootstrapped: false, ...problem } : state
  }

  #target(proxy: string, { name: target, authFile }: ProxyTarget): TargetState {
    return targetState(proxy, target, {
      ...this.#proxies.state(proxy, target),
      probe: this.#probes.result(`${proxy}/${target}`),
      unusable: this.#clientAuths.problem(authFile),
    })
  }
}
