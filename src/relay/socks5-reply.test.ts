import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { reasonOfReply } from './socks-error.ts'
import { advance, type Socks5State, type Socks5Step, socks5Start } from './socks5-reply.ts'

/** Plays a whole handshake against the chunks; what was to be sent, and how it ended. */
function play(
  auth: boolean,
  chunks: readonly Uint8Array[],
): { sent: string[]; rest: number[]; last: Socks5Step } {
  let state: Socks5State = socks5Start(auth)
  const sent: string[] = []
  let last: Socks5Step = { kind: 'more', state }
  for (const [i, chunk] of chunks.entries()) {
    last = advance(state, chunk)
    while (last.kind === 'send') {
      sent.push(last.message)
      last = advance(last.state, new Uint8Array(0))
    }
    if (last.kind === 'done') {
      return { sent, last, rest: [...last.rest, ...chunks.slice(i + 1).flatMap((c) => [...c])] }
    }
    if (last.kind === 'failed') return { sent, last, rest: [] }
    state = last.state
    assert.ok(state.pending.length < 262, `gathers ${state.pending.length} bytes`)
  }
  return { sent, last, rest: [] }
}

function cut(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const at = [...new Set(cuts.map((c) => c % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...at, bytes.length].map((end, i) => bytes.subarray(at[i - 1] ?? 0, end))
}

const address = fc.oneof(
  fc.uint8Array({ minLength: 4, maxLength: 4 }).map((a) => [1, ...a]),
  fc.uint8Array({ maxLength: 255 }).map((a) => [3, a.length, ...a]),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map((a) => [4, ...a]),
)

test('a success is read in any pieces, and not one byte behind it is lost', () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      address,
      fc.nat(65_535),
      fc.uint8Array({ maxLength: 600 }),
      fc.array(fc.nat(1200), { maxLength: 12 }),
      (auth, bound, port, stream, cuts) => {
        const head = auth ? [5, 2, 1, 0] : [5, 0]
        const bytes = Uint8Array.from([...head, 5, 0, 0, ...bound, port >> 8, port & 0xff, ...stream])
        const { sent, rest, last } = play(auth, cut(bytes, cuts))
        assert.equal(last.kind, 'done')
        assert.deepEqual(sent, auth ? ['auth', 'request'] : ['request'])
        assert.deepEqual(rest, [...stream])
        assert.equal(last.kind === 'done' && last.bound.port, port)
      },
    ),
  )
})

test('garbage neither throws nor gathers without end, and how it is cut changes nothing', () => {
  fc.assert(
    fc.property(
      fc.boolean(),
      fc.uint8Array({ maxLength: 700 }),
      fc.constantFrom([], [5], [5, 0], [5, 0, 5, 0, 0], [5, 2, 1, 0, 5], [5, 0, 5, 0, 0, 3, 255]),
      fc.array(fc.nat(800), { maxLength: 12 }),
      (auth, garbage, head, cuts) => {
        const bytes = Uint8Array.from([...head, ...garbage])
        const whole = play(auth, [bytes])
        const pieces = play(auth, cut(bytes, cuts))
        assert.equal(pieces.last.kind, whole.last.kind)
        assert.deepEqual(pieces.sent, whole.sent)
        assert.deepEqual(pieces.rest, whole.rest)
        if (whole.last.kind === 'failed') assert.deepEqual(pieces.last, whole.last)
      },
    ),
  )
})

test('every refusal has its reason, at its second byte', () => {
  const named: Record<number, string> = {
    1: 'GeneralFailure',
    5: 'ConnectionRefused',
    240: 'DescriptorNotFound',
  }
  Object.assign(named, {
    244: 'ClientAuthMissing',
    245: 'ClientAuthWrong',
    246: 'AddressInvalid',
    99: 'UnknownReply',
  })
  for (let reply = 1; reply < 256; reply++) {
    const { last } = play(false, [Uint8Array.from([5, 0, 5, reply])])
    assert.equal(last.kind, 'failed')
    assert.equal(last.kind === 'failed' && last.reply, reply)
    assert.equal(last.kind === 'failed' && last.reason, named[reply] ?? reasonOfReply(reply))
  }
})

test('what no SOCKS5 proxy would say is a protocol error', () => {
  const cases: [boolean, number[], string][] = [
    [false, [0x48], 'ProtocolError'],
    [false, [5, 2], 'ProtocolError'],
    [true, [5, 0], 'ProtocolError'],
    [true, [5, 2, 5, 0], 'ProtocolError'],
    [false, [5, 0, 4], 'ProtocolError'],
    [false, [5, 0, 5, 0, 0, 2], 'ProtocolError'],
    [false, [5, 255], 'AuthRejected'],
    [true, [5, 2, 1, 1], 'AuthRejected'],
  ]
  for (const [auth, bytes, reason] of cases) {
    const { last } = play(auth, [Uint8Array.from(bytes)])
    assert.equal(last.kind === 'failed' ? last.reason : last.kind, reason, bytes.join(' '))
  }
})

test('the bound address is readable in each of its forms', () => {
  const forms: [number[], string][] = [
    [[1, 10, 0, 0, 1], '10.0.0.1'],
    [[3, 2, 0x61, 0x62], 'ab'],
    [[4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], '2001:db8:0:0:0:0:0:1'],
  ]
  for (const [form, host] of forms) {
    const { last } = play(false, [Uint8Array.from([5, 0, 5, 0, 0, ...form, 1, 0xbb])])
    assert.deepEqual(last.kind === 'done' && last.bound, { host, port: 443 })
  }
})
