import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { PosternError } from '../core/errors.ts'
import { patient } from './patient.ts'

const client = {} as Socket
const socket = {} as Socket
const refused = new PosternError('DialFailed', 'could not connect')
const never = new AbortController().signal

test('dials again until something answers', async () => {
  let tries = 0
  const dial = patient(async () => {
    if (++tries < 3) throw refused
    return socket
  }, 60_000)
  assert.equal(await dial(client, never), socket)
  assert.equal(tries, 3)
})

test('gives up with the last error once its patience is over, and at once where it has none', async () => {
  let tries = 0
  const fail = async (): Promise<never> => {
    tries++
    throw refused
  }
  await assert.rejects(patient(fail, 200)(client, never), refused)
  assert.ok(tries > 1)
  tries = 0
  await assert.rejects(patient(fail, 0)(client, never), refused)
  assert.equal(tries, 1)
})

test('does not go on for a client that left, nor over an error of another kind', async () => {
  const gone = new AbortController()
  const waiting = patient(async () => {
    setImmediate(() => gone.abort())
    throw refused
  }, 60_000)(client, gone.signal)
  await assert.rejects(waiting, { name: 'AbortError' })
  const fault = new TypeError('a bug')
  await assert.rejects(
    patient(async () => {
      throw fault
    }, 60_000)(client, never),
    fault,
  )
})
