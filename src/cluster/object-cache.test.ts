import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../core/resource.ts'
import type { CacheChange } from './cluster.ts'
import { ObjectCache } from './object-cache.ts'

function door(name: string, resourceVersion: string, rest: object = {}): Resource {
  return {
    apiVersion: 'test.postern.dev/v1',
    kind: 'Door',
    metadata: { namespace: 'one', name, uid: `uid of ${name}`, resourceVersion },
    ...rest,
  }
}

const told = ({ key, before, after }: CacheChange<Resource>) =>
  `${key} ${before?.metadata.resourceVersion ?? '-'} ${after?.metadata.resourceVersion ?? '-'}`

test('puts and deletes are held, indexed and told; the same version again is not', () => {
  const cache = new ObjectCache<Resource>('Door')
  const seen: string[] = []
  cache.index('colour', (object) => [String(object.colour)])
  cache.put(door('a', '1', { colour: 'red' }))
  const stop = cache.subscribe((change) => seen.push(told(change)))
  cache.put(door('a', '1', { colour: 'blue' }))
  cache.put(door('a', '2', { colour: 'blue' }))
  assert.deepEqual(cache.by('colour', 'red'), [])
  assert.equal(cache.by('colour', 'blue')[0], cache.get('one/a'))
  cache.delete('one/a', 'uid of another')
  cache.delete('one/b')
  cache.delete('one/a', 'uid of a')
  assert.deepEqual(seen, ['one/a - 1', 'one/a 1 2', 'one/a 2 -'])
  assert.deepEqual([cache.list(), cache.list('one'), cache.by('colour', 'blue')], [[], [], []])
  stop()
  cache.put(door('a', '3'))
  assert.equal(seen.length, 3)
})

test('a replacement is all in before anybody hears of it', () => {
  const cache = new ObjectCache<Resource>('Door')
  cache.replace([door('a', '1'), door('b', '2'), door('c', '3')])
  const seen: string[] = []
  cache.subscribe((change) => {
    const names = cache.list('one').map(({ metadata }) => metadata.name)
    seen.push(`${told(change)}: ${names.sort().join('')}`)
  })
  seen.length = 0
  cache.replace([door('b', '2'), door('c', '4'), door('d', '5')])
  assert.deepEqual(seen, ['one/c 3 4: bcd', 'one/d - 5: bcd', 'one/a 1 -: bcd'])
})

test('whoever changes or subscribes while it listens breaks nobody’s story', () => {
  const cache = new ObjectCache<Resource>('Door')
  cache.put(door('a', '1'))
  const stories: string[][] = [[], [], []]
  let late: (() => void) | undefined
  cache.subscribe((change) => {
    stories[0]!.push(told(change))
    if (change.after?.metadata.resourceVersion === '1') cache.put(door('a', '2'))
    if (change.after?.metadata.resourceVersion === '3') {
      cache.delete('one/a')
      late = cache.subscribe((other) => stories[2]!.push(told(other)))
      cache.put(door('a', '5'))
    }
  })
  cache.subscribe((change) => stories[1]!.push(told(change)))
  cache.put(door('a', '3'))
  assert.deepEqual(stories, [
    ['one/a - 1', 'one/a 1 2', 'one/a 2 3', 'one/a 3 -', 'one/a - 5'],
    ['one/a - 2', 'one/a 2 3', 'one/a 3 -', 'one/a - 5'],
    ['one/a - 5'],
  ])
  late?.()
})

test('who has stopped hears nothing, even of what waits to be told', () => {
  const cache = new ObjectCache<Resource>('Door')
  const seen: string[] = []
  let stop: () => void = () => {}
  cache.subscribe(() => stop())
  stop = cache.subscribe((change) => seen.push(told(change)))
  cache.put(door('a', '1'))
  assert.deepEqual(seen, [])
})
