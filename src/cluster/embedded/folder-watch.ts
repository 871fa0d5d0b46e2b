import { type FSWatcher, watch } from 'node:fs'

export interface WatchedFolder {
  path: string
  /** Of the folder itself: another one of the same path needs another watch. */
  inode: string
}

/** One watch for every folder of a tree, since a recursive one follows no links. */
export class FolderWatch {
  readonly #onEvent: () => void
  readonly #watchers = new Map<string, FSWatcher>()

  constructor(onEvent: () => void) {
    this.#onEvent = onEvent
  }

  /** Watches these and no others. Returns whether there is a new one, whose past was not watched. */
  set(folders: WatchedFolder[]): boolean {
    const wanted = new Map(folders.map(({ path, inode }) => [`${inode} ${path}`, path]))
    for (const [id, watcher] of this.#watchers) {
      if (wanted.has(id)) continue
      watcher.close()
      this.#watchers.delete(id)
    }
    let added = false
    for (const [id, path] of wanted) {
      if (this.#watchers.has(id)) continue
      try {
        const watcher = watch(path, { persistent: false }, () => this.#onEvent())
        watcher.on('error', () => {
          watcher.close()
          this.#watchers.delete(id)
        })
        this.#watchers.set(id, watcher)
        added = true
      } catch {
        // Gone again, or the system is out of watches: the next scan finds what happens there.
      }
    }
    return added
  }

  close(): void {
    this.set([])
  }
}
