const LEVELS = { debug: 'debug', info: 'debug', notice: 'info', warn: 'warn', err: 'error' } as const

export type LogLevel = (typeof LEVELS)[keyof typeof LEVELS]

/** Splits a line of tor's log; what does not look like one is an info. */
export function readLogLine(line: string): { level: LogLevel; text: string } {
  const match = /^\w{3} \d\d \d\d:\d\d:\d\d(?:\.\d+)? \[(debug|info|notice|warn|err)\] (.*)$/.exec(line)
  if (match === null) return { level: 'info', text: line }
  return { level: LEVELS[match[1] as keyof typeof LEVELS], text: match[2]! }
}
