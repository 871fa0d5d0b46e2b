import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ControlProtocolError } from './errors.ts'
import { parseEvent } from './events.ts'
import { type ControlMessage, ControlParser, DATA_LIMIT, LINE_LIMIT, MESSAGE_LINES_LIMIT } from './parser.ts'

/** What tor 0.4.9 was seen to send. */
const recorded: readonly string[] = [
  '250-PROTOCOLINFO 1\r\n250-AUTH METHODS=COOKIE,SAFECOOKIE COOKIEFILE="/run/tor/cookie"\r\n250-VERSION Tor="0.4.9.11"\r\n250 OK\r\n',
  `250 AUTHCHALLENGE SERVERHASH=${'AB'.repeat(32)} SERVERNONCE=${'CD'.repeat(32)}\r\n`,
  '250 OK\r\n',
  '250-version=0.4.9.11\r\n250-onions/detached=\r\n250 OK\r\n',
  '250+onions/detached=\r\naaaa\r\nbbbb\r\n.\r\n250 OK\r\n',
  '250+config-text=\r\n..\r\n...dots\r\n\r\nlast\r\n.\r\n250-version=0.4.9.11\r\n250 OK\r\n',
  '250-Log=notice stdout\r\n250 Bridge\r\n',
  '552 Unrecognized key "nonsense"\r\n',
  '513 Unacceptable option value: Failed to parse\r\n',
  '550 Onion address collision\r\n',
  '650 HS_DESC UPLOADED aaaa UNKNOWN $0000000000000000000000000000000000000000~relay\r\n',
  '650+HS_DESC_CONTENT aaaa bbbb $00~relay\r\nhs-descriptor 3\r\n.\r\n650 OK\r\n',
  '650-CONF_CHANGED\r\n650-Nickname=x\r\n650 OK\r\n',
  '650 STATUS_CLIENT NOTICE BOOTSTRAP PROGRESS=100 TAG=done SUMMARY="Done"\r\n',
]

function parse(text: string | Buffer): ControlMessage[] {
  return new ControlParser().push(Buffer.from(text as string))
}

test('a reply on one line, on several, and with data', () => {
  assert.deepEqual(parse('250 OK\r\n'), [
    { kind: 'reply', code: 250, lines: [{ code: 250, separator: ' ', text: 'OK' }] },
  ])
  assert.deepEqual(parse('250-a=1\r\n250+b=\r\none\r\n..two\r\n\r\n.\r\n250 OK\r\n')[0]?.lines, [
    { code: 250, separator: '-', text: 'a=1' },
    { code: 250, separator: '+', text: 'b=', data: 'one\n.two\n' },
    { code: 250, separator: ' ', text: 'OK' },
  ])
  assert.equal(parse('250+b=\r\n.\r\n250 OK\r\n')[0]?.lines[0]?.data, '')
  assert.equal(parse('250 \r\n')[0]?.lines[0]?.text, '')
})

test('the status lines of a data block are data', () => {
  assert.equal(parse('250+b=\r\n250 OK\r\n650 X\r\n.\r\n250 OK\r\n')[0]?.lines[0]?.data, '250 OK\n650 X')
})

test('events come between replies', () => {
  const messages = parse('250 OK\r\n650 GUARD x\r\n650-A\r\n650 OK\r\n552 no\r\n')
  assert.deepEqual(
    messages.map(({ kind, code }) => [kind, code]),
    [
      ['reply', 250],
      ['event', 650],
      ['event', 650],
      ['reply', 552],
    ],
  )
})

test('the code of a reply is that of its last line', () => {
  const [message] = parse('250-fine\r\n552 not\r\n')
  assert.equal(message?.code, 552)
  assert.equal(message?.lines[0]?.code, 250)
})

test('what is not the protocol is refused, and refused again', () => {
  const texts = [
    '250 OK\n',
    '\r\n',
    '\n',
    '250\r\n',
    '25 OK\r\n',
    '250*OK\r\n',
    '150 OK\r\n',
    '750 OK\r\n',
    'HTTP/1.1 400 Bad Request\r\n',
    '250+a=\r\nline\n',
    '250-a\r\n650 event\r\n',
    '650-a\r\n250 OK\r\n',
  ]
  for (const text of texts) {
    const parser = new ControlParser()
    const push = (bytes: string): ControlMessage[] => parser.push(Buffer.from(bytes))
    assert.throws(() => push(text), ControlProtocolError, JSON.stringify(text))
    assert.throws(() => push('250 OK\r\n'), { code: 'ControlProtocol' })
  }
})

test('lines, data and messages have limits', () => {
  const longest = `250 ${'a'.repeat(LINE_LIMIT - 6)}\r\n`
  assert.equal(parse(longest).length, 1)
  assert.throws(() => parse(`250 ${'a'.repeat(LINE_LIMIT - 5)}\r\n`), ControlProtocolError)
  // Refused before the end of the line has come.
  assert.throws(() => parse('a'.repeat(LINE_LIMIT + 1)), ControlProtocolError)
  const row = `${'b'.repeat(1022)}\r\n`
  const rows = DATA_LIMIT / 1024 - 1
  assert.equal(parse(`250+a=\r\n${row.repeat(rows)}.\r\n250 OK\r\n`).length, 1)
  assert.throws(() => parse(`250+a=\r\n${row.repeat(rows + 2)}`), ControlProtocolError)
  assert.throws(() => parse(`250+a=\r\n${'\r\n'.repeat(DATA_LIMIT / 2)}`), ControlProtocolError)
  assert.equal(parse(`${'250-a\r\n'.repeat(MESSAGE_LINES_LIMIT - 1)}250 OK\r\n`).length, 1)
  assert.throws(() => parse('250-a\r\n'.repeat(MESSAGE_LINES_LIMIT + 1)), ControlProtocolError)
  // Many blocks in one message count together.
  const block = `250+a=\r\n${row.repeat(1000)}.\r\n`
  assert.throws(() => parse(block.repeat(5)), ControlProtocolError)
})

test('any bytes in any pieces give messages or a ControlProtocolError', () => {
  const pieces = fc.oneof(
    fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom(...recorded, '\r\n', '.', '250', '650+', '250-a', '.\r\n')
      .map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (chunks) => {
      const parser = new ControlParser()
      try {
        for (const chunk of chunks) for (const message of parser.push(chunk)) parseEvent(message)
      } catch (error) {
        assert.ok(error instanceof ControlProtocolError)
      }
    }),
    { numRuns: 500 },
  )
})

test('a conversation gives the same messages however it is cut', () => {
  const conversation = fc.array(fc.constantFrom(...recorded), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(
      conversation,
      fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 30 }),
      (texts, cuts) => {
        const bytes = Buffer.from(texts.join(''))
        const parser = new ControlParser()
        const messages: ControlMessage[] = []
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = cuts[i % cuts.length] ?? 1
          messages.push(...parser.push(bytes.subarray(at, at + size)))
          at += size
        }
        assert.deepEqual(messages, parse(bytes))
        assert.equal(messages.length, texts.length)
        assert.equal(parser.partial, false)
      },
    ),
  )
})

test('any message that is written in the form of the protocol is read', () => {
  const text = fc
    .string({ unit: fc.constantFrom('a', '.', ' ', '"', 'é', '2', '\r', '=') })
    .filter((t) => !t.endsWith('\r'))
  const line = fc.record({
    text,
    data: fc.option(fc.array(text, { minLength: 1, maxLength: 4 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(line, { maxLength: 5 }), text, (lines, last) => {
      let wire = ''
      for (const { text: head, data } of lines) {
        wire += `250${data === undefined ? '-' : '+'}${head}\r\n`
        for (const row of data ?? []) wire += `${row.startsWith('.') ? '.' : ''}${row}\r\n`
        if (data !== undefined) wire += '.\r\n'
      }
      const [message] = parse(`${wire}250 ${last}\r\n`)
      assert.deepEqual(
        message?.lines.map((read) => [read.text, read.data]),
        [...lines.map((made) => [made.text, made.data?.join('\n')]), [last, undefined]],
      )
    }),
  )
})

test('a message that is not complete is seen', () => {
  for (const text of ['2', '250-a\r\n', '250+a\r\n', '250+a\r\n.']) {
    const parser = new ControlParser()
    assert.equal(parser.partial, false)
    parser.push(Buffer.from(text))
    assert.equal(parser.partial, true, text)
  }
})
