import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type FolderContent, FolderWatcher, readFolder } from './watcher.ts'

let base: string
before(async () => {
  base = await mkdtemp(join(tmpdir(), 'watch-'))
})
after(() => rm(base, { recursive: true, force: true }))

async function until(what: string, check: () => boolean, limitMs = 10_000): Promise<void> {
  const end = performance.now() + limitMs
  while (!check()) {
    assert.ok(performance.now() < end, `not within ${limitMs} ms: ${what}`)
    await pause(10)
  }
}

/** Writes as the kubelet does: a new folder, and `..data` swapped to it at once. */
async function publish(folder: string, turn: number, files: Record<string, string>): Promise<void> {
  const dated = join(folder, `..${turn}`)
  await mkdir(dated, { recursive: true })
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(dated, name), text)
    await symlink(join('..data', name), join(folder, name)).catch(() => {})
  }
  await symlink(`..${turn}`, join(folder, '..data_tmp'))
  await rename(join(folder, '..data_tmp'), join(folder, '..data'))
}

test('follows the swaps of ..data, each content whole, and tells no content twice', async () => {
  const folder = join(base, 'kubelet')
  await mkdir(folder)
  await publish(folder, 1, { a: '1', b: '1' })
  const seen: string[] = []
  const watcher = new FolderWatcher({
    folder,
    onContent: ({ files }) => {
      seen.push([...files].map(([name, data]) => `${name}=${data}`).join(' '))
    },
  })
  await watcher.start()
  for (let turn = 2; turn <= 20; turn += 1) {
    await publish(folder, turn, { a: String(turn), b: String(turn) })
    if (turn % 3 === 0) await rm(join(folder, `..${turn - 1}`), { recursive: true })
  }
  await until('the last content', () => seen.at(-1) === 'a=20 b=20')
  // The same content under a new date is no news.
  const count = seen.length
  await publish(folder, 21, { a: '20', b: '20' })
  await watcher.scan()
  assert.equal(seen.length, count)
  for (const text of seen) {
    const [, a, b] = /^a=(\d+) b=(\d+)$/.exec(text) ?? []
    assert.equal(a, b, `a mix of two contents: ${text}`)
  }
  watcher.close()
})

test('waits for a folder that is not there yet, and outlives its removal', async () => {
  const folder = join(base, 'later')
  const contents: FolderContent[] = []
  const errors: unknown[] = []
  const watcher = new FolderWatcher({
    folder,
    rescanMs: 20,
    onContent: (content) => {
      contents.push(content)
    },
    onError: (error) => errors.push(error),
  })
  await watcher.start()
  assert.equal(errors.length, 1)
  await mkdir(folder)
  await writeFile(join(folder, 'x'), 'one')
  await until('the first file', () => contents.at(-1)?.files.get('x')?.toString() === 'one')
  await rm(folder, { recursive: true })
  await until('the error', () => errors.length >= 2)
  await mkdir(folder)
  await writeFile(join(folder, 'x'), 'two')
  await until('the second life', () => contents.at(-1)?.files.get('x')?.toString() === 'two')
  watcher.close()
})

test('hidden files and folders are no content; the digest tells names from contents', async () => {
  const one = join(base, 'one')
  const two = join(base, 'two')
  for (const folder of [one, two]) await mkdir(join(folder, 'sub'), { recursive: true })
  await writeFile(join(one, '.hidden'), 'x')
  await writeFile(join(one, 'a'), 'bc')
  await writeFile(join(two, 'ab'), 'c')
  assert.deepEqual([...(await readFolder(one)).files.keys()], ['a'])
  assert.notEqual((await readFolder(one)).digest, (await readFolder(two)).digest)
})

test('tells an unchanged content once more after the folder could not be read', async () => {
  const folder = join(base, 'away')
  await mkdir(folder)
  await writeFile(join(folder, 'a'), '1')
  const seen: string[] = []
  const watcher = new FolderWatcher({
    folder,
    onContent: ({ files }) => void seen.push(String(files.get('a'))),
    onError: () => void seen.push('error'),
    rescanMs: 10,
  })
  try {
    await watcher.start()
    await rename(folder, `${folder}-moved`)
    await until('the error', () => seen.includes('error'))
    await rename(`${folder}-moved`, folder)
    await until('the content', () => seen.length === 3)
    assert.deepEqual(seen, ['1', 'error', '1'])
  } finally {
    watcher.close()
  }
})
