import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { SILENT } from '../../core/logger.ts'
import { KeptState } from './kept-state.ts'

const STATE = `# Tor state file last generated on 2026-01-01 00:00:00 local time

Guard in=default rsa_id=${'A'.repeat(40)} nickname=relay sampled_on=2026-01-01T00:00:00 confirmed_idx=0
TorVersion Tor 0.4.9.11
LastWritten 2026-01-01 00:00:00
`
const OTHER = STATE.replace('relay', 'other')

let base: string
let folder: string
let state: string
let problems: (string | undefined)[]
const open: KeptState[] = []

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'ks-'))
  folder = join(base, 'keep')
  state = join(base, 'data', 'tor', 'state')
  mkdirSync(folder)
  mkdirSync(join(base, 'data', 'tor'), { recursive: true })
  problems = []
})
afterEach(async () => {
  for (const kept of open.splice(0)) await kept.close()
  rmSync(base, { recursive: true, force: true })
})

async function start(everyMs?: number): Promise<KeptState> {
  const onProblem = (text: string | undefined): void => void problems.push(text)
  const more = everyMs === undefined ? {} : { everyMs }
  const kept = new KeptState({ folder, state, log: SILENT, onProblem, ...more })
  open.push(kept)
  await kept.start()
  return kept
}

const text = (path: string): string => readFileSync(path, 'utf8')

test('a tor without a state gets the kept one, and one that has its own keeps that', async () => {
  writeFileSync(join(folder, 'state'), STATE)
  rmSync(join(base, 'data'), { recursive: true })
  await start()
  assert.equal(text(state), STATE)
  assert.equal(statSync(state).mode & 0o777, 0o600)
  writeFileSync(state, OTHER)
  await start()
  assert.equal(text(state), OTHER)
  assert.deepEqual(problems, [])
})

test('it is copied now and then and at the end, and not any more after that', async () => {
  const kept = await start(10)
  writeFileSync(state, STATE)
  for (const end = Date.now() + 10_000; !existsSync(join(folder, 'state')); await pause(5)) {
    assert.ok(Date.now() < end, `nothing was copied: ${readdirSync(folder)}`)
  }
  assert.equal(text(join(folder, 'state')), STATE)
  const last = await start()
  writeFileSync(state, OTHER)
  await last.close()
  await kept.close()
  assert.equal(text(join(folder, 'state')), OTHER)
  writeFileSync(state, STATE)
  await kept.save()
  assert.equal(text(join(folder, 'state')), OTHER)
  assert.deepEqual(readdirSync(folder), ['state'])
})

const unusable: [what: string, put: (path: string) => void, words: RegExp][] = [
  ['binary', (path) => writeFileSync(path, Buffer.from([1, 0, 2])), /line 1 of it/],
  ['a page', (path) => writeFileSync(path, '# ok\n<html>\n'), /line 2 of it/],
  ['too large', (path) => writeFileSync(path, '#'.repeat(1024 * 1024 + 1)), /more than 1048576 bytes/],
  ['a folder', (path) => mkdirSync(path), /not a file|EISDIR/],
  ['a link', (path) => symlinkSync('/etc/passwd', path), /ELOOP|symbolic/],
]
for (const [what, put, words] of unusable) {
  test(`what is kept and is ${what} is told, and tor starts anew`, async () => {
    put(join(folder, 'state'))
    await start()
    assert.equal(existsSync(state), false)
    assert.match(problems.join(), words)
    assert.match(problems.join(), /tor starts with new guards/)
  })
}

test('a volume that cannot be written is told, until it can', async () => {
  const kept = await start()
  writeFileSync(state, STATE)
  rmSync(folder, { recursive: true })
  await kept.save()
  assert.match(problems.at(-1)!, /guards are not kept: .*spec\.persistence/)
  mkdirSync(folder)
  await kept.save()
  assert.equal(problems.at(-1), undefined)
  assert.equal(text(join(folder, 'state')), STATE)
})

test('a copy that was cut off is cleared away, and one that is being written is not', async () => {
  for (const name of ['state.0000000a.new', 'state.0000000b.new', 'state.mine.new']) {
    writeFileSync(join(folder, name), 'x')
  }
  const old = new Date(Date.now() - 3_600_000)
  for (const name of ['state.0000000a.new', 'state.mine.new']) utimesSync(join(folder, name), old, old)
  chmodSync(folder, 0o700)
  await start()
  assert.deepEqual(readdirSync(folder).sort(), ['state.0000000b.new', 'state.mine.new'])
})
