import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'

const MAIN = resolve(import.meta.dirname, 'main.ts')

/** Processes whose command line names the folder. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter((entry) => {
    if (!/^\d+$/.test(entry)) return false
    try {
      return readFileSync(`/proc/${entry}/cmdline`, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

async function gone(folder: string): Promise<void> {
  const deadline = Date.now() + 20_000
  while (processesOf(folder).length > 0) {
    if (Date.now() > deadline) assert.fail(`still there: ${processesOf(folder).join(', ')}`)
    await new Promise((done) => setTimeout(done, 50))
  }
}

test('by hand: one line of JSON, ends on SIGTERM, and leaves nothing after kill -9', async () => {
  const state = mkdtempSync(join(tmpdir(), 'ptm-'))
  try {
    const first = spawn(process.execPath, [MAIN, '--state', state, '--json'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(createInterface(first.stdout), 'line')
    const document = JSON.parse(line) as { options: Record<string, string>; socksPort: number }
    assert.equal(document.options.DirAuthority?.split('\n').length, 3)
    assert.ok(document.socksPort > 1024)
    assert.ok(processesOf(state).length >= 8)
    first.kill('SIGTERM')
    const [code] = await once(first, 'exit')
    assert.equal(code, 0)
    await gone(state)

    const second = spawn(process.execPath, [MAIN, '--state', state], { stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const step of createInterface(second.stdout)) if (step.startsWith('bootstrap')) break
    assert.ok(processesOf(state).length >= 8)
    second.kill('SIGKILL')
    await gone(state)
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
})

test('bad arguments are refused with what to do', async () => {
  const child = spawn(process.execPath, [MAIN, '--sate', 'x'], { stdio: ['ignore', 'ignore', 'pipe'] })
  let text = ''
  child.stderr.on('data', (chunk) => {
    text += chunk
  })
  const [code] = await once(child, 'exit')
  assert.equal(code, 2)
  assert.match(text, /tor-network: .*--sate/)
  assert.match(text, /--state DIR/)
})
