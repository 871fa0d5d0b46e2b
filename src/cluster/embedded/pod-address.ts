import { createHash } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { PosternError } from '../../core/errors.ts'

export interface PodPlace {
  /** Short: names the pod's folder, because the path of a unix socket ends at 107 bytes. */
  id: string
  /** 127.77.x.y */
  address: string
}

const SPACE = 256 * 254

/**
 * Which pod has which loopback address and folder. An entry stays for good: a pod that comes back finds its old
 * address, and nobody else ever gets it. Written atomically to one small JSON file.
 */
export class AddressBook {
  readonly #file: string
  readonly #seed: string
  readonly #places = new Map<string, PodPlace>()
  readonly #taken = new Set<string>()
  #next = 1

  /**
   * @param seed where the search starts, e.g. the state's path, so that two states on one machine seldom meet
   */
  constructor(file: string, seed: string) {
    this.#file = file
    this.#seed = seed
    for (const [key, place] of readPlaces(file)) {
      if (this.#taken.has(place.address)) continue
      this.#places.set(key, place)
      this.#taken.add(place.address)
      this.#next = Math.max(this.#next, Number.parseInt(place.id, 36) + 1)
    }
  }

  get(key: string): PodPlace | undefined {
    return this.#places.get(key)
  }

  /** The pod's place, made at its first use. @throws PosternError NoPodAddress when all are handed out */
  claim(key: string): PodPlace {
    const known = this.#places.get(key)
    if (known !== undefined) return known
    const place = { id: this.#next.toString(36), address: this.#free(key) }
    this.#next += 1
    this.#places.set(key, place)
    this.#taken.add(place.address)
    this.#save()
    return place
  }

  #free(key: string): string {
    const start = createHash('sha256').update(`${this.#seed}\0${key}`).digest().readUInt32BE(0)
    for (let step = 0; step < SPACE; step += 1) {
      const slot = (start + step) % SPACE
      const address = `127.77.${Math.floor(slot / 254)}.${(slot % 254) + 1}`
      if (!this.#taken.has(address)) return address
    }
    throw new PosternError(
      'NoPodAddress',
      `All ${SPACE} pod addresses are handed out. Stop postern, remove ${this.#file} and start again.`,
    )
  }

  #save(): void {
    const text = `${JSON.stringify({ version: 1, pods: Object.fromEntries(this.#places) }, null, 1)}\n`
    const draft = `${this.#file}.tmp`
    const file = openSync(draft, 'w', 0o600)
    try {
      writeSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(draft, this.#file)
  }
}

/** An unreadable file is as good as none: no pod runs while it is read, so new addresses hurt nobody. */
function readPlaces(file: string): [string, PodPlace][] {
  let parsed: unknown
  try {
    parsed = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return []
  }
  const pods = (parsed as { pods?: unknown } | null)?.pods
  if (typeof pods !== 'object' || pods === null) return []
  return Object.entries(pods).filter(
    (entry): entry is [string, PodPlace] =>
      /^[0-9a-z]{1,6}$/.test(String(entry[1]?.id)) &&
      /^127\.77\.\d{1,3}\.\d{1,3}$/.test(String(entry[1]?.address)),
  )
}
