import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ControlProtocolError } from './errors.ts'
import { decodeQuoted, encodeQuoted, parseArguments } from './quote.ts'

test('a quoted string is encoded and decoded', () => {
  assert.equal(encodeQuoted('a "b" \\c'), '"a \\"b\\" \\\\c"')
  assert.deepEqual(decodeQuoted('x "a \\"b\\"" y', 2), { value: 'a "b"', end: 11 })
  assert.equal(decodeQuoted('"\\n\\r\\t\\\\\\"\\\'"').value, '\n\r\t\\"\'')
  assert.equal(decodeQuoted('"\\303\\251 \\xC3\\xa9 é"').value, 'é é é')
  for (const text of ['a\nb', 'a\rb', 'a\0b'])
    assert.throws(() => encodeQuoted(text), { code: 'ControlArgument' })
  for (const text of ['', 'a', '"', '"a', '"a\\"', '"\\']) {
    assert.throws(() => decodeQuoted(text), ControlProtocolError)
  }
})

test('whatever is quoted is decoded', () => {
  const unit = fc.oneof(
    fc.constantFrom('"', '\\', ' ', 'n', '7', 'x'),
    fc.string({ minLength: 1, maxLength: 1, unit: 'grapheme' }),
  )
  fc.assert(
    fc.property(
      fc.string({ unit }).filter((text) => !/[\r\n\0]/.test(text)),
      (text) => {
        const quoted = encodeQuoted(text)
        assert.deepEqual(decodeQuoted(`${quoted} "`), { value: text, end: quoted.length })
      },
    ),
  )
})

test('arguments are words and values', () => {
  const read = parseArguments('AUTH METHODS=COOKIE,SAFECOOKIE COOKIEFILE="/a b/\\"c"  last')
  assert.deepEqual(read.words, ['AUTH', 'last'])
  assert.deepEqual(
    [...read.values],
    [
      ['METHODS', 'COOKIE,SAFECOOKIE'],
      ['COOKIEFILE', '/a b/"c'],
    ],
  )
  assert.deepEqual(parseArguments('').words, [])
  assert.deepEqual(
    parseArguments('EMPTY= X=""').values,
    new Map([
      ['EMPTY', ''],
      ['X', ''],
    ]),
  )
  assert.deepEqual(parseArguments('$AB=name ==').words, ['$AB=name', '=='])
  assert.throws(() => parseArguments('A="b'), ControlProtocolError)
})

test('any text gives arguments or a ControlProtocolError', () => {
  const unit = fc.oneof(fc.constantFrom('"', '\\', ' ', '=', 'A'), fc.string({ minLength: 1, maxLength: 1 }))
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      try {
        parseArguments(text)
      } catch (error) {
        assert.ok(error instanceof ControlProtocolError)
      }
    }),
  )
})
