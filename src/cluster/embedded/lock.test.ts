import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { lockState } from './lock.ts'

test('a state folder is one process’s, until it lets go', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-lock-'))
  const lock = lockState(folder)
  assert.throws(() => lockState(folder), {
    name: 'PosternError',
    code: 'StateInUse',
    message: `${folder} is in use by process ${process.pid}: stop it first, or choose another state folder`,
  })
  lock.release()
  lock.release()
  lockState(folder).release()
  rmSync(folder, { recursive: true })
})

test('kill -9 lets go, and nothing before it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-lock-'))
  const script = `
    import { lockState } from ${JSON.stringify(new URL('./lock.ts', import.meta.url).href)}
    lockState(${JSON.stringify(folder)})
    // Whoever holds a lock need not keep what it was given.
    gc()
    setTimeout(() => {
      gc()
      process.stdout.write('locked')
    })
    setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => holder.kill('SIGKILL'))
  await once(holder.stdout, 'data')
  assert.throws(() => lockState(folder), {
    code: 'StateInUse',
    message: new RegExp(`in use by process ${holder.pid}:`),
  })
  const ended = once(holder, 'exit')
  holder.kill('SIGKILL')
  await ended
  lockState(folder).release()
  rmSync(folder, { recursive: true })
})
