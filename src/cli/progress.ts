import type { WriteStream } from 'node:tty'
import { printable, type Style } from './style.ts'

/** Shows what goes on, as it goes on. */
export interface Progress {
  begin(step: string, text: string): void
  /** What the step does at this moment. */
  detail(text: string): void
  end(good: boolean, text: string, seconds: number): void
}

export const SILENT_PROGRESS: Progress = { begin() {}, detail() {}, end() {} }

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const NAME_WIDTH = 11
const TIME_WIDTH = 8
/** To the begin of the line, and empties it. */
const CLEAR = '\r\u001b[K'

/** A live line with the seconds so far on a terminal; one line at the end of each step otherwise. */
export function progressOn(stream: WriteStream | NodeJS.WritableStream, style: Style): Progress {
  const terminal = (stream as WriteStream).isTTY === true ? (stream as WriteStream) : undefined
  let timer: NodeJS.Timeout | undefined
  let started = 0
  let frame = 0
  let name = ''
  let now = ''
  const lineOf = (mark: string, seconds: number, text: string): string => {
    const took = `${seconds.toFixed(1)} s`.padStart(TIME_WIDTH)
    return `  ${mark} ${style('bold', name.padEnd(NAME_WIDTH))}${style('gray', took)}  ${text}`
  }
  const draw = (): void => {
    const room = Math.max(10, (terminal?.columns || 80) - NAME_WIDTH - TIME_WIDTH - 7)
    frame = (frame + 1) % FRAMES.length
    const seconds = (performance.now() - started) / 1000
    terminal?.write(
      `${CLEAR}${lineOf(style('cyan', FRAMES[frame]!), seconds, printable(now).slice(0, room))}`,
    )
  }
  return {
    begin(step, text) {
      name = step
      now = text
      started = performance.now()
      if (terminal === undefined) return
      draw()
      timer = setInterval(draw, 100)
      timer.unref()
    },
    detail(text) {
      now = text
    },
    end(good, text, seconds) {
      clearInterval(timer)
      const mark = good ? style('green', '✓') : style('red', '✗')
      stream.write(`${terminal === undefined ? '' : CLEAR}${lineOf(mark, seconds, text)}\n`)
    },
  }
}
