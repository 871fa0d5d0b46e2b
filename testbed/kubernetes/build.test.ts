import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { buildingMissing, mustBuild } from './go.ts'
import { kubernetesMissing } from './left-out.ts'
import { ProgramCache } from './program-cache.ts'
import { run } from './run.ts'

const prefix = 'tiny-'
const lock = `${prefix}lock`

/** A module with two programs that a Go compiler builds in a moment. */
async function tiny(): Promise<{
  cache: ProgramCache<'one' | 'two'>
  root: string
  said: string[]
  write(file: string, text: string): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}> {
  const folder = await mkdtemp(join(tmpdir(), 'ptb-'))
  const [module, root] = [join(folder, 'module'), join(folder, 'cache')]
  const write = (file: string, text: string) => writeFile(join(module, file), text)
  const main = (word: string) => `package main\n\nfunc main() { println("${word}") }\n`
  for (const name of ['one', 'two']) {
    await mkdir(join(module, name), { recursive: true })
    await write(`${name}/main.go`, main(name))
  }
  await write('go.mod', 'module example.test/tiny\n\ngo 1.21\n')
  const said: string[] = []
  const program = (name: string) => ({ package: `./${name}`, check: [], minutes: 1 })
  const cache = new ProgramCache(
    {
      folder: module,
      files: ['go.mod', 'one/main.go', 'two/main.go'],
      flags: ['-trimpath', '-buildvcs=false'],
      programs: { one: program('one'), two: program('two') },
    },
    { root, prefix, say: (line) => void said.push(line) },
  )
  return {
    cache,
    root,
    said,
    write,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

const built = (said: readonly string[]) =>
  said.filter((line) => line.startsWith('building ')).map((line) => line.split(' ')[1])

const skip = kubernetesMissing()

describe('programs of the test bed', skip === undefined ? {} : { skip }, () => {
  test('only what is asked for is built, once, and it runs', async () => {
    await using bed = await tiny()
    const { one } = await bed.cache.build(['one'])
    await run(one)
    assert.deepEqual(built(bed.said), ['one'])
    await bed.cache.build(['one', 'two'])
    await bed.cache.build(['one', 'two'])
    assert.deepEqual(built(bed.said), ['one', 'two'])
  })

  const damages: Record<string, (path: string) => Promise<void>> = {
    missing: (path) => rm(path),
    'cut short': (path) => truncate(path, 1000),
    'changed, with the same size': async (path) => {
      const content = await readFile(path)
      content[content.length >> 1]! ^= 0xff
      await writeFile(path, content)
    },
    'not executable': (path) => chmod(path, 0o644),
    'without a manifest': (path) => rm(join(path, '../manifest.json')),
    'with a broken manifest': (path) => writeFile(join(path, '../manifest.json'), '{"one":nu'),
    'beside a half-built one': async (path) => {
      await rm(path)
      await writeFile(join(path, '../.one.new'), 'half')
    },
  }
  for (const [how, damage] of Object.entries(damages)) {
    test(`a program that is ${how} is built again`, async () => {
      await using bed = await tiny()
      const { one } = await bed.cache.build(['one'])
      await damage(one)
      assert.equal((await bed.cache.build(['one'])).one, one)
      assert.deepEqual(built(bed.said), ['one', 'one'])
      await run(one)
      assert.deepEqual((await readdir(join(one, '..'))).sort(), ['manifest.json', 'one'])
    })
  }

  test('another source has another folder; an old one goes when nobody used it for a day', async () => {
    await using bed = await tiny()
    const first = join((await bed.cache.build(['one'])).one, '..')
    await bed.write('go.mod', 'module example.test/tiny\n\ngo 1.22\n')
    const second = join((await bed.cache.build(['one'])).one, '..')
    assert.notEqual(second, first)
    await stat(first)
    const longAgo = new Date(Date.now() - 25 * 60 * 60 * 1000)
    await utimes(first, longAgo, longAgo)
    await bed.cache.build(['two'])
    await assert.rejects(stat(first), { code: 'ENOENT' })
    assert.deepEqual((await readdir(bed.root)).sort(), [second.split('/').at(-1), lock].sort())
  })

  test('a source that does not compile, and a program that does not run, are told and leave nothing', async () => {
    await using bed = await tiny()
    await bed.write('one/main.go', 'package main\n\nfunc main() { nonsense() }\n')
    await bed.write('two/main.go', 'package main\n\nfunc main() { panic("broken inside") }\n')
    await assert.rejects(bed.cache.build(['one']), {
      code: 'TestbedBuild',
      message:
        /one of the test bed was not built: go build \.\/one ended with code 1: .*undefined: nonsense/s,
    })
    await assert.rejects(bed.cache.build(['two']), { code: 'TestbedBuild', message: /broken inside/ })
    const folders = (await readdir(bed.root)).filter((name) => name !== lock)
    for (const folder of folders) assert.deepEqual(await readdir(join(bed.root, folder)), [])
  })

  test('two at once build once', async () => {
    await using bed = await tiny()
    await Promise.all([bed.cache.build(['one', 'two']), bed.cache.build(['one', 'two'])])
    assert.deepEqual(built(bed.said).sort(), ['one', 'two'])
    assert.ok(bed.said.some((line) => /^waiting: .* is in use by process \d+$/.test(line)))
  })

  test('the lock of a process that was killed is taken over', async () => {
    await using bed = await tiny()
    await mkdir(bed.root, { recursive: true })
    const holder = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        '-e',
        `import(${JSON.stringify(join(import.meta.dirname, 'lock.ts'))}).then(({ tryLock }) => {
           globalThis.lock = tryLock(${JSON.stringify(join(bed.root, lock))})
           console.log(globalThis.lock === undefined ? 'refused' : 'locked')
           setInterval(() => {}, 1e9)
         })`,
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    const [said] = (await once(holder.stdout, 'data')) as [Buffer]
    assert.equal(said.toString(), 'locked\n')
    const waiting = bed.cache.build(['one'])
    while (!bed.said.some((line) => line.startsWith('waiting'))) {
      await Promise.race([waiting, new Promise((done) => setTimeout(done, 20))])
      assert.deepEqual(built(bed.said), [], 'it builds while another process holds the lock')
    }
    holder.kill('SIGKILL')
    await run((await waiting).one)
  })

  test('a build that is given up ends, and leaves nothing half-built', async () => {
    await using bed = await tiny()
    const reason = new Error('enough')
    const ended = new AbortController()
    const building = bed.cache.build(['one'], ended.signal)
    while (built(bed.said).length === 0) await Promise.race([building, new Promise(setImmediate)])
    ended.abort(reason)
    await assert.rejects(building, reason)
    const folders = (await readdir(bed.root)).filter((name) => name !== lock)
    for (const folder of folders) assert.deepEqual(await readdir(join(bed.root, folder)), [])
    await run((await bed.cache.build(['one'])).one)
  })
})

test('without Go, and when it is off, it says why and what to do', () => {
  assert.equal(buildingMissing({ PATH: '/nonexistent' }), 'no Go')
  assert.throws(() => mustBuild({ PATH: '/nonexistent' }), { code: 'GoMissing', message: /install Go/ })
  assert.equal(buildingMissing({ PATH: process.env.PATH, POSTERN_TESTBED: 'off' }), 'POSTERN_TESTBED=off')
  assert.throws(() => mustBuild({ POSTERN_TESTBED: 'off' }), { code: 'TestbedOff', message: /unset/ })
})
