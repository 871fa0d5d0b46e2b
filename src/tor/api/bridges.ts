/** `spec.bridges` of a TorDaemon. */
export interface BridgesSpec {
  transport?: string
  /** Secret of the user, whose bridges are never taken out. */
  seed?: { name: string; key?: string }
  source?: { https: { url: string } }
  minHealthy?: number
  maxBridges?: number
  evictGraceSeconds?: number
}
