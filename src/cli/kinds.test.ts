import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KINDS, kindNamed, parseTarget } from './kinds.ts'

test('a kind is found by plural, singular, kind and short name, in any case, with or without its group', () => {
  for (const word of [
    'onionservices',
    'onionservice',
    'OnionService',
    'ONION',
    'onionservices.tor.fr0st.dev',
    'OnionService.tor.fr0st.dev',
  ]) {
    assert.equal(kindNamed(word).kind, 'OnionService', word)
  }
  assert.equal(kindNamed('svc').kind, 'Service')
  assert.equal(kindNamed('deployments.apps').kind, 'Deployment')
  for (const kind of KINDS) assert.equal(kindNamed(kind.plural), kind)
})

test('no two kinds share a word', () => {
  const words = KINDS.flatMap((kind) => [kind.plural, kind.kind.toLowerCase(), ...(kind.shortNames ?? [])])
  assert.equal(new Set(words).size, words.length)
})

test('an unknown kind names the nearest one, or all', () => {
  assert.throws(() => kindNamed('onionservces'), /did you mean 'onionservices'\?/)
  assert.throws(() => kindNamed('services.tor.fr0st.dev'), { code: 'Usage' })
  assert.throws(() => kindNamed('zzzzzzzzzzzz'), /there are onionservices, /)
})

test('kind and name come as two words or one', () => {
  assert.equal(parseTarget('onion', 'web').name, 'web')
  assert.equal(parseTarget('onion/web', undefined).name, 'web')
  assert.equal(parseTarget('onion', undefined).name, undefined)
  assert.throws(() => parseTarget('onion/web', 'web'), /not both/)
})
