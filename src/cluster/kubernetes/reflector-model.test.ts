import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Resource } from '../../core/resource.ts'
import { DOOR, FakeServer, gone, refusal, unanswered } from './api-fixture.ts'
import { ReflectedCache } from './reflected-cache.ts'
import { Reflector } from './reflector.ts'
import { isNewer } from './resource-version.ts'

/**
 * Whatever happens in whatever order, a cache ends as what the server has, no object comes back from the dead, and
 * every listener hears an unbroken story.
 */

const NAMES = ['a', 'b', 'c', 'd']
const NAMESPACES = ['one', 'two']
const FAULTS = [unanswered, gone, () => refusal('Unavailable', 503), () => refusal('NotFound', 404)]

const target = { name: fc.constantFrom(...NAMES), namespace: fc.constantFrom(...NAMESPACES) }
const fault = fc.constantFrom(...FAULTS)
const operation = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), ...target }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('write' as const), ...target }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('remove' as const), ...target }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('answer' as const), index: fc.nat(9) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('deliver' as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('page' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('bookmark' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('end' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('tear' as const), fault }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('compact' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('failList' as const), fault }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('failWatch' as const), fault }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('subscribe' as const) }) },
)

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Hears all of a cache and compares it with the rules. */
function witness(cache: ReflectedCache<Resource>) {
  const heard = new Map<string, Resource>()
  const dead = new Set<string>()
  const faults: string[] = []
  cache.subscribe(({ key, before, after }) => {
    if (before !== heard.get(key)) faults.push(`${key}: before is not what was told last`)
    if (before === undefined && after === undefined) faults.push(`${key}: nothing became nothing`)
    const [old, now] = [before?.metadata, after?.metadata]
    if (now?.resourceVersion !== undefined && !isNewer(now.resourceVersion, old?.resourceVersion)) {
      faults.push(`${key}: ${now.resourceVersion} after ${old?.resourceVersion}`)
    }
    if (now?.uid !== undefined && dead.has(now.uid)) faults.push(`${key}: back from the dead`)
    if (old?.uid !== undefined && now?.uid !== old.uid) dead.add(old.uid)
    if (after === undefined) heard.delete(key)
    else heard.set(key, after)
  })
  return { heard, faults }
}

const content = (objects: Iterable<[string, Resource]>) =>
  Object.fromEntries([...objects].map(([key, object]) => [key, JSON.stringify(object)]).sort())

async function play(operations: Operation[], namespaces: (string | undefined)[]) {
  const server = new FakeServer()
  server.holdPages = true
  server.holdEvents()
  const cache = new ReflectedCache<Resource>(DOOR)
  let seed = 1
  const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647
  const reflectors = namespaces.map(
    (namespace) =>
      new Reflector<Resource>({
        api: server.api,
        kind: DOOR,
        cache,
        log: { debug() {}, info() {}, warn() {}, error() {} },
        selection: namespace === undefined ? {} : { namespace },
        pause: turn,
        random,
        now: () => 0,
      }),
  )
  const witnesses = [witness(cache)]
  const answers: Resource[] = []
  for (const reflector of reflectors) reflector.start()
  let count = 0
  for (const one of operations) {
    if (one.do === 'put') server.put(one.name, count++, {}, one.namespace)
    else if (one.do === 'write') answers.push(server.put(one.name, count++, {}, one.namespace))
    else if (one.do === 'remove') server.remove(one.name, one.namespace)
    else if (one.do === 'answer') {
      const [answer] = answers.splice(one.index % Math.max(1, answers.length), 1)
      if (answer !== undefined) cache.take(answer)
    } else if (one.do === 'deliver') server.deliver(one.count)
    else if (one.do === 'page') server.page()
    else if (one.do === 'bookmark') server.bookmark()
    else if (one.do === 'end') server.end()
    else if (one.do === 'tear') server.end(one.fault())
    else if (one.do === 'compact') server.compact()
    else if (one.do === 'failList') server.listFaults.push(one.fault())
    else if (one.do === 'failWatch') server.watchFaults.push(one.fault())
    else witnesses.push(witness(cache))
    await turn()
    await turn()
  }
  server.deliver(Number.POSITIVE_INFINITY)
  server.holdPages = false
  for (const answer of answers) cache.take(answer)
  const wanted = content(server.objects)
  const held = () =>
    content(cache.list().map((object) => [`${object.metadata.namespace}/${object.metadata.name}`, object]))
  for (let turns = 0; turns < 2_000; turns++) {
    server.page()
    await turn()
    const synced = reflectors.every(({ state }) => state.synced && state.error === undefined)
    if (synced && JSON.stringify(held()) === JSON.stringify(wanted)) break
  }
  assert.deepEqual(held(), wanted)
  assert.ok(reflectors.every(({ state }) => state.synced))
  await cache.ready
  for (const { heard, faults } of witnesses) {
    assert.deepEqual(faults, [])
    assert.deepEqual(content(heard), wanted)
  }
  for (const reflector of reflectors) {
    void reflector.close()
    server.page()
    await reflector.close()
  }
  return { lists: server.lists.length, watches: server.watches.length }
}

for (const [title, namespaces] of [
  ['one watch of all', [undefined]],
  ['a watch for each namespace', NAMESPACES],
] as const) {
  test(`never loses or resurrects an object: ${title}`, async () => {
    let lists = 0
    let watches = 0
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 80, size: 'max' }), async (operations) => {
        const done = await play(operations, [...namespaces])
        lists += done.lists
        watches += done.watches
      }),
      { numRuns: 200, endOnFailure: false },
    )
    // The runs went through what they are for.
    assert.ok(lists > 600 && watches > 600, `${lists} lists and ${watches} watches`)
  })
}
