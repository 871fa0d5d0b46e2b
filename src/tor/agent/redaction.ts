const ADDRESSES_LIMIT = 2_000

/** Takes out of a text what leads to a bridge: addresses that were added, and certificates. */
export class Redaction {
  readonly #hosts = new Set<string>()
  #pattern: RegExp | undefined

  /** @param hosts IP literals without brackets; also those of bridges that are no longer in use are kept */
  add(hosts: readonly string[]): void {
    const before = this.#hosts.size
    for (const host of hosts) this.#hosts.add(host)
    if (this.#hosts.size === before) return
    for (const host of this.#hosts) if (this.#hosts.size > ADDRESSES_LIMIT) this.#hosts.delete(host)
    const any = [...this.#hosts].map((host) => RegExp.escape(host)).join('|')
    this.#pattern = new RegExp(`(?<![0-9.])\\[?(?:${any})\\]?(?::[0-9]+)?(?![0-9])`, 'gi')
  }

  of(text: string): string {
    const clean = text.replace(/\bcert=\S+/g, 'cert=[redacted]')
    return this.#pattern === undefined ? clean : clean.replace(this.#pattern, '[bridge]')
  }
}
