import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nearest } from './nearest.ts'

const KINDS = ['OnionService', 'OnionProxy', 'TorDaemon', 'Secret', 'Service']

test('a typing mistake finds its word', () => {
  assert.equal(nearest('OnionServce', KINDS), 'OnionService')
  assert.equal(nearest('onionservice', KINDS), 'OnionService')
  assert.equal(nearest('Sercet', KINDS), 'Secret')
  assert.equal(nearest('TorDeamon', KINDS), 'TorDaemon')
})

test('a word that is nothing of the kind finds nothing', () => {
  assert.equal(nearest('Deployment', KINDS), undefined)
  assert.equal(nearest('', KINDS), undefined)
  assert.equal(nearest('ab', ['cd']), undefined)
  assert.equal(nearest('x'.repeat(10_000), KINDS), undefined)
})

test('a candidate is nearest to itself, and the answer is always a candidate', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ minLength: 1, maxLength: 20 }), { minLength: 1 }),
      fc.string(),
      (words, other) => {
        for (const word of words) assert.equal(nearest(word, words)?.toLowerCase(), word.toLowerCase())
        const found = nearest(other, words)
        assert.ok(found === undefined || words.includes(found))
      },
    ),
  )
})
