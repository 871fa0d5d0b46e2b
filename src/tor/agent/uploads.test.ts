import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HsDescEvent } from '../control/events.ts'
import { countUpload, tracked } from './uploads.ts'

const event = (action: HsDescEvent['action'], hsdir: string): HsDescEvent => ({
  type: 'HS_DESC',
  action,
  address: 'a',
  hsdir,
})

test('answers count however many directories there have been, and an unasked one never does', () => {
  const onion = tracked({ name: 'a', address: 'a', since: 0, ports: [] }, 0)
  assert.equal(countUpload(onion, event('UPLOADED', 'stranger'), 1, 1), false)
  assert.equal(onion.published, false)
  for (let day = 0; day < 3000; day += 1) {
    countUpload(onion, event('UPLOAD', `d${day}`), day, day)
    assert.equal(countUpload(onion, event('UPLOADED', `d${day}`), day, day), true, `directory ${day}`)
  }
  assert.equal(onion.unacknowledgedSince, undefined)
  assert.ok(onion.open.size <= 1024)
})
