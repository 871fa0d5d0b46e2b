import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REASON_EXPLANATIONS } from './explanations.ts'
import { DaemonCondition, OnionCondition, ProxyCondition, Reason } from './reasons.ts'

const TOR = join(import.meta.dirname, '..')
const CONDITIONS = Object.values({ ...OnionCondition, ...ProxyCondition, ...DaemonCondition })

test('every reason that stands in the sources is explained', () => {
  const found = new Set<string>(Object.values(Reason))
  const files = [...globSync('{agent,operator}/*.ts', { cwd: TOR })].filter(
    (file) => !file.endsWith('.test.ts'),
  )
  assert.ok(files.length > 20, files.join(', '))
  for (const file of files) {
    const text = readFileSync(join(TOR, file), 'utf8')
    for (const [, reason] of text.matchAll(/reason: '([A-Z]\w+)'/g)) found.add(reason!)
    // tor that cannot be started: the code of the error becomes the reason.
    if (!/agent\/(tor-(process|version)|private-folder)\.ts$/.test(file)) continue
    for (const [, code] of text.matchAll(/new PosternError\(\s*'(\w+)'/g)) found.add(code!)
  }
  assert.ok(found.has('TorExited') && found.has('TorMissing'), [...found].join(', '))
  assert.deepEqual(
    [...found].filter((reason) => REASON_EXPLANATIONS[reason] === undefined),
    [],
  )
})

test('every explanation has a meaning, a next step, and conditions that there are', () => {
  for (const [reason, { conditions, means, next }] of Object.entries(REASON_EXPLANATIONS)) {
    // Conventions of Kubernetes: one word, for programs; an API server takes nothing else as a reason.
    assert.match(reason, /^[A-Z][A-Za-z0-9]*$/)
    for (const text of [means, next]) assert.match(text, /^.{7,}\.$/, reason)
    assert.ok(reason === 'Ready' || conditions.length > 0, reason)
    for (const type of conditions) assert.ok((CONDITIONS as string[]).includes(type), `${reason}: ${type}`)
  }
})
