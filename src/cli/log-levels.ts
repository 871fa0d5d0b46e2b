import type { LevelWithSilent } from 'pino'

/** From the most to the least that is logged. */
export const LOG_LEVELS: LevelWithSilent[] = ['debug', 'info', 'warn', 'error', 'silent']
