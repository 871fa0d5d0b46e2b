import { type LevelWithSilent, pino } from 'pino'
import type { Logger } from '../core/logger.ts'
import { LOG_LEVELS } from './log-levels.ts'
import { printable, styleFor } from './style.ts'

/** JSON lines to a file; readable by its owner only. */
export function fileLogger(path: string, level: LevelWithSilent): Logger {
  return pino({ level, base: null }, pino.destination({ dest: path, sync: true, mode: 0o600 }))
}

/** To stderr: lines for a person on a terminal, JSON lines otherwise. */
export function stderrLogger(level: LevelWithSilent): Logger {
  if (process.stderr.isTTY !== true)
    return pino({ level, base: null }, pino.destination({ dest: 2, sync: true }))
  const style = styleFor(process.stderr)
  const write =
    (own: LevelWithSilent, tone: 'gray' | 'yellow' | 'red') => (fields: object, message: string) => {
      if (LOG_LEVELS.indexOf(own) < LOG_LEVELS.indexOf(level)) return
      const details = Object.entries(fields).map(([name, value]) => `${name}=${text(value)}`)
      process.stderr.write(`${style(tone, own.padEnd(5))} ${printable([message, ...details].join('  '))}\n`)
    }
  return {
    debug: write('debug', 'gray'),
    info: write('info', 'gray'),
    warn: write('warn', 'yellow'),
    error: write('error', 'red'),
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
