import { codeOf, messageOf, PosternError } from '../core/errors.ts'

/** What the command exits with; documented in the README. */
export const Exit = {
  ok: 0,
  /** Something did not work; the message says what. */
  failed: 1,
  /** The command line, or a folder that it names, is wrong. */
  usage: 2,
  /** The object or the state folder that is asked for does not exist. */
  notFound: 3,
  /** Another postern runs on the same state folder. */
  busy: 4,
  /** A program that is needed, such as tor, is not installed. */
  missing: 5,
  /** The operator's Lease went to another one, or could not be renewed. */
  leadershipLost: 6,
} as const

/** A mistake on the command line. */
export class UsageError extends PosternError {
  override readonly name: string = 'UsageError'

  constructor(message: string) {
    super('Usage', message)
  }
}

/** Codes of errors that have an exit code of their own; every other error exits with 1. */
const EXITS: Record<string, number> = {
  Usage: Exit.usage,
  StatePathTooLong: Exit.usage,
  NotFound: Exit.notFound,
  StateNotFound: Exit.notFound,
  StateInUse: Exit.busy,
  ProgramMissing: Exit.missing,
  TorNetworkProgram: Exit.missing,
  KubeconfigNotFound: Exit.usage,
  KubeconfigInvalid: Exit.usage,
  InClusterInvalid: Exit.usage,
  AddressUnavailable: Exit.usage,
  LeadershipLost: Exit.leadershipLost,
}

export function exitCodeOf(error: unknown): number {
  return EXITS[codeOf(error) ?? ''] ?? Exit.failed
}

/** One line for a person; the stack only where POSTERN_DEBUG asks for it. */
export function errorText(error: unknown, debug: boolean): string {
  const text = `postern: ${messageOf(error)}`
  return debug && error instanceof Error && error.stack !== undefined ? `${text}\n${error.stack}` : text
}
