/** Bridges as one tor is to use them. */
export interface BridgeSet {
  /** `ClientTransportPlugin` of tor. */
  plugin: string
  /** In canonical order, each once. */
  bridges: readonly ConfiguredBridge[]
}

export interface ConfiguredBridge {
  /** As tor takes it. Never to be logged or reported. */
  line: string
  fingerprint: string
  /** IP literal, without brackets. */
  host: string
}

const BYTES_LIMIT = 1024 * 1024
const BRIDGES_LIMIT = 500
const LINE =
  /^(?<transport>[A-Za-z_][A-Za-z0-9_]*) (?:(?<v4>[0-9.]+)|\[(?<v6>[0-9a-fA-F:.]+)\]):[0-9]{1,5} (?<fingerprint>[0-9A-F]{40})(?: [!-~]+)*$/

/** Reads the bridges of one transport from a file of canonical lines; `unusable` counts what is none of that. */
export function readBridges(
  text: string,
  transport: string,
): { bridges: ConfiguredBridge[]; unusable: number } {
  const found = new Map<string, ConfiguredBridge>()
  let unusable = 0
  const whole = text.length <= BYTES_LIMIT ? text : text.slice(0, text.lastIndexOf('\n', BYTES_LIMIT))
  for (const line of whole.split('\n')) {
    if (line === '') continue
    const { v4, v6, fingerprint, ...rest } = LINE.exec(line)?.groups ?? {}
    const host = v4 ?? v6
    if (rest.transport !== transport || host === undefined || fingerprint === undefined) unusable++
    else if (found.size < BRIDGES_LIMIT || found.has(line)) found.set(line, { line, fingerprint, host })
    else unusable++
  }
  // The file has this order already. tor drops circuits for another order of the same lines.
  const bridges = [...found.values()].sort((a, b) => (a.line < b.line ? -1 : 1))
  return { bridges, unusable }
}
