/** A loop that has not turned for so long is stuck, and is restarted. Milliseconds. */
export const STUCK_AFTER = 30_000
const BEAT = 1_000
/** Between the end of a term and the exit that it means. */
const OVERDUE_AFTER = 5_000
const MOST_LINES = 20

export interface HealthSource {
  /** How each cache stands. */
  states(): { name: string; synced: boolean; error?: string }[]
  /** Faults beside: of the kinds, of the Lease. */
  problems(): string[]
  /** What it does now. */
  phase(): 'starting' | 'standing by' | 'working' | 'stopping'
  /** Whether controllers work although the Lease is not ours any more. */
  overdue(): boolean
}

/** Answers of `/livez` and `/readyz`: undefined when all is well, else what is not. */
export class Health {
  readonly #source: HealthSource
  readonly #elapsed: () => number
  readonly #beat: NodeJS.Timeout
  #last: number
  #overdueSince: number | undefined

  /** @param elapsed milliseconds of a clock that never jumps */
  constructor(source: HealthSource, elapsed: () => number = () => performance.now()) {
    this.#source = source
    this.#elapsed = elapsed
    this.#last = elapsed()
    this.#beat = setInterval(() => this.beat(), BEAT)
    this.#beat.unref()
  }

  /** Called as long as timers run. */
  beat(): void {
    this.#last = this.#elapsed()
    if (!this.#source.overdue()) this.#overdueSince = undefined
    else this.#overdueSince ??= this.#elapsed()
  }

  live(): string | undefined {
    const lag = this.#elapsed() - this.#last
    if (lag > STUCK_AFTER) return `the event loop has not turned for ${Math.round(lag / 1000)} s`
    if (this.#overdueSince !== undefined && this.#elapsed() - this.#overdueSince > OVERDUE_AFTER) {
      return 'the renewal of the Lease is overdue, and controllers still work'
    }
    return undefined
  }

  /** Ready is who could lead at once: also one that stands by. */
  ready(): string | undefined {
    const lines = [
      ...this.#source.problems(),
      ...this.#source.states().flatMap(({ name, synced, error }) => {
        if (error !== undefined) return [`${name}: ${error}`]
        return synced ? [] : [`${name}: is being listed`]
      }),
    ]
    const phase = this.#source.phase()
    if (lines.length === 0 && (phase === 'starting' || phase === 'stopping')) lines.push(`is ${phase}`)
    if (lines.length === 0) return undefined
    const more = lines.length - MOST_LINES
    return [...lines.slice(0, MOST_LINES), ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
  }

  close(): void {
    clearInterval(this.#beat)
  }
}
