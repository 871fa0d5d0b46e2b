import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { startOfTail } from './pod-log.ts'

test('the last lines begin where they should', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'plt-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'log')
  const tail = async (text: string, lines: number): Promise<string> => {
    writeFileSync(file, text)
    return Buffer.from(text)
      .subarray(await startOfTail(file, lines))
      .toString()
  }
  assert.equal(await startOfTail(join(folder, 'absent'), 3), 0)
  const big = `${'x'.repeat(100_000)}\n`.repeat(3)
  assert.equal(await tail(big, 1), big.slice(0, big.length / 3))
  const text = fc.array(fc.constantFrom('a', 'bc', '\n', '\n\n')).map((parts) => parts.join(''))
  await fc.assert(
    fc.asyncProperty(text, fc.nat(6), async (content, lines) => {
      const all = content.split(/(?<=\n)/).filter((line) => line !== '')
      assert.equal(await tail(content, lines), lines === 0 ? '' : all.slice(-lines).join(''))
    }),
    { numRuns: 60 },
  )
})
