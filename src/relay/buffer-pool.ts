/** What a connection reads into while it says little: most connections never need more. */
export const SMALL: number = 8 * 1024
const MEDIUM = 64 * 1024
/** With large reads a relay takes half the system calls and turns; measured, more than this gains nothing. */
const LARGE = 256 * 1024

/** Large buffers in use at a time (8 MiB). Beyond it bulk gets medium ones: a thousand slow readers must not cost more. */
const MAX_LARGE = 32
/** Free ones kept, by size: 2 MiB, 2 MiB and 4 MiB at most. */
const KEPT: Readonly<Record<number, number>> = { [SMALL]: 256, [MEDIUM]: 32, [LARGE]: 16 }

const free: Readonly<Record<number, Buffer[]>> = { [SMALL]: [], [MEDIUM]: [], [LARGE]: [] }
let largeInUse = 0

/** Lends a buffer, for a connection with much or little to say. */
export function lend(bulk: boolean): Buffer {
  const size = bulk ? (largeInUse < MAX_LARGE ? LARGE : MEDIUM) : SMALL
  if (size === LARGE) largeInUse += 1
  return free[size]!.pop() ?? Buffer.allocUnsafeSlow(size)
}

/** Takes it back, for others to overwrite. */
export function giveBack(buffer: Buffer): void {
  lose(buffer)
  const kept = free[buffer.length]!
  if (kept.length < KEPT[buffer.length]!) kept.push(buffer)
}

/** Not lent any more, but maybe still being read by the system: left to the garbage collector. */
export function lose(buffer: Buffer): void {
  if (buffer.length === LARGE) largeInUse -= 1
}
