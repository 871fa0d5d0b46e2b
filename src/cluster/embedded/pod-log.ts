import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const LIMIT = 8 * 1024 * 1024

/** Output of a pod's containers: appended, and turned over to one `.1` file at the limit. */
export class PodLogFile {
  readonly path: string
  readonly #limit: number
  #file: number | undefined
  #size = 0

  /** @param limit bytes */
  constructor(path: string, limit: number = LIMIT) {
    this.path = path
    this.#limit = limit
  }

  /** Never throws: a full disk costs output, not the pod. */
  write(chunk: Buffer): void {
    try {
      if (this.#file !== undefined && this.#size + chunk.length > this.#limit) this.#turn()
      this.#file ??= this.#open()
      writeSync(this.#file, chunk)
      this.#size += chunk.length
    } catch {
      this.close()
    }
  }

  close(): void {
    const file = this.#file
    this.#file = undefined
    if (file === undefined) return
    try {
      closeSync(file)
    } catch {
      // Closed is closed.
    }
  }

  #open(): number {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
    const file = openSync(this.path, 'a', 0o600)
    this.#size = fstatSync(file).size
    return file
  }

  #turn(): void {
    this.close()
    renameSync(this.path, `${this.path}.1`)
  }
}

/** Remembers the last line of a stream, cut to what fits into a status. */
export class LastLine {
  #tail = ''

  push(chunk: Buffer): void {
    this.#tail = (this.#tail + chunk.toString('utf8')).slice(-2048)
  }

  get text(): string {
    const lines = this.#tail.split('\n').map((line) => line.replace(/[\x00-\x1f\x7f]+/g, ' ').trim())
    return (lines.findLast((line) => line !== '') ?? '').slice(0, 300)
  }
}
