import type { Logger } from '../../core/logger.ts'

export interface TorAgentOptions {
  /** Folder with `topology.json`. */
  topology: string
  /** Folder with the onions' keys and the report's credentials. */
  keys: string
  /** Kept over restarts: tor's own folder stands in it. */
  data: string
  /** Outlives `data`: a copy of tor's guards stands in it. */
  keep?: string
  /** Sockets stand here; its path is short and has no blanks. */
  run: string
  /** The pod's address. */
  address: string
  /** Default /usr/bin/tor. */
  tor?: string
  log: Logger
  /** false keeps tor off the network; for tests. */
  network?: boolean
  /** Default 9081; 0 takes any free one. */
  reportPort?: number
  /** Default 9080; 0 takes any free one. */
  metricsPort?: number
  /** How long {@link TorAgent.leave} goes on serving unless it is retired earlier; default 0. */
  lingerMs?: number
  /** A tor that cannot be talked to for so long is started again; default 60 s. */
  silenceMs?: number
  /** Folder of the programs of transports; default /usr/bin. */
  programs?: string
  /** Bridges that work are replaced at most so often; default 60 s. */
  bridgesEveryMs?: number
}
