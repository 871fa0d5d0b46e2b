import { type LevelWithSilent, pino } from 'pino'
import type { Logger } from '../../core/logger.ts'

/**
 * JSON lines to stderr with keys that stay: `time` (ISO 8601), `level` (a word), `msg`, and where they apply
 * `controller`, `key`, `error`.
 *
 * @param stream for tests
 */
export function operatorLogger(level: LevelWithSilent, stream?: { write(line: string): void }): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    // At once: the last line before an exit is the one that matters.
    stream ?? pino.destination({ dest: 2, sync: true }),
  )
}
