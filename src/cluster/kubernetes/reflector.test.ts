import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource } from '../../core/resource.ts'
import type { Selection } from './api.ts'
import { DOOR, FakeServer, gone, refusal, unanswered } from './api-fixture.ts'
import { ReflectedCache, type ReflectedCacheOptions } from './reflected-cache.ts'
import { Reflector } from './reflector.ts'

interface MakeOptions extends ReflectedCacheOptions<Resource> {
  selection?: Selection
}

/** A reflector that does not wait, at the upper end of every jitter; `pauses` is what it would have waited. */
function make({ selection, ...options }: MakeOptions = {}) {
  const server = new FakeServer()
  const cache = new ReflectedCache<Resource>(DOOR, options)
  const pauses: number[] = []
  const warnings: string[] = []
  const counts = { restarts: 0, relists: 0 }
  const clock = { now: 1_000 }
  const reflector = new Reflector<Resource>({
    api: server.api,
    kind: DOOR,
    cache,
    ...(selection === undefined ? {} : { selection }),
    log: { debug() {}, info() {}, warn: (_fields, message) => warnings.push(message), error() {} },
    hooks: { onRestart: () => counts.restarts++, onRelist: () => counts.relists++ },
    pause: async (milliseconds) => {
      pauses.push(milliseconds)
      await new Promise((resolve) => setImmediate(resolve))
    },
    random: () => 0.999_999,
    now: () => clock.now,
  })
  const names = () => cache.list().map(({ metadata }) => `${metadata.name}${metadata.resourceVersion}`)
  return { server, cache, reflector, pauses, warnings, counts, clock, names }
}

type Made = ReturnType<typeof make>

async function until(made: Made, state: () => boolean): Promise<void> {
  const end = performance.now() + 10_000
  while (!state()) {
    const { names, pauses, server, reflector } = made
    const saw = { names: names(), pauses, lists: server.lists.length, state: reflector.state }
    assert.ok(performance.now() < end, `still not: ${state}: ${JSON.stringify(saw)}`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Started, listed once, and watching. */
async function watching(options: MakeOptions = {}): Promise<Made> {
  const made = make(options)
  made.server.put('a', 1)
  made.server.put('b', 1)
  made.server.put('c', 1)
  made.reflector.start()
  await until(made, () => made.server.open.size === 1)
  return made
}

test('lists in pages and watches from there, with what it was asked to select', async () => {
  const selection = { namespace: 'one', labelSelector: 'x=y', fieldSelector: 'metadata.name!=z' }
  const made = await watching({ selection, metadataOnly: true })
  const { server, names, reflector, cache } = made
  await cache.ready
  assert.deepEqual(names(), ['a98', 'b99', 'c100'])
  for (const asked of [...server.lists, ...server.watches]) {
    const { namespace, labelSelector, fieldSelector, metadataOnly } = asked
    assert.deepEqual(
      { namespace, labelSelector, fieldSelector, metadataOnly },
      { ...selection, metadataOnly: true },
    )
  }
  assert.deepEqual(
    server.lists.map(({ limit, continue: token, resourceVersion }) => [limit, token, resourceVersion]),
    [
      [500, undefined, undefined],
      [500, '100 2', undefined],
    ],
  )
  assert.equal(server.watches[0]?.resourceVersion, '100')
  assert.equal(server.watches[0]?.timeoutSeconds, 290)
  assert.deepEqual(reflector.state, { synced: true, since: 1_000 })
  await reflector.close()
  assert.equal(server.open.size, 0)
})

test('follows events and bookmarks, and goes on from them after an end in order, at once', async () => {
  const made = await watching()
  const { server, reflector, pauses, counts, names } = made
  server.put('a', 2)
  server.remove('b')
  await until(made, () => names().join() === 'a101,c100')
  server.end()
  await until(made, () => server.watches.length === 2 && server.open.size === 1)
  assert.equal(server.watches[1]?.resourceVersion, '102')
  server.revision = 150
  server.bookmark()
  server.end()
  // What was said before the end may be lost with it.
  await until(made, () => server.watches.length === 3 && server.open.size === 1)
  server.bookmark()
  await new Promise((resolve) => setImmediate(resolve))
  server.end()
  await until(made, () => server.watches.length === 4)
  assert.equal(server.watches[3]?.resourceVersion, '150')
  assert.equal(server.lists.length, 2)
  assert.deepEqual(counts, { restarts: 3, relists: 0 })
  assert.ok(pauses.length <= 1, `${pauses}`)
  await reflector.close()
})

test('watches that end at once, with nothing, back off; one that lasts is free', async () => {
  const made = await watching()
  const { server, reflector, pauses, clock } = made
  const ends = async (times: number) => {
    for (let index = 0; index < times; index++) {
      const before = server.watches.length
      server.end()
      await until(made, () => server.watches.length === before + 1 && server.open.size === 1)
    }
  }
  await ends(9)
  assert.deepEqual(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  clock.now += 240_000
  await ends(2)
  assert.equal(pauses.length, 8)
  await ends(1)
  assert.equal(pauses.at(-1), 100)
  await reflector.close()
})

test('a torn or refused watch goes on from the last version without a list', async () => {
  for (const fault of [
    unanswered(),
    new TypeError('terminated'),
    refusal('Unavailable', 500),
    refusal('Forbidden', 403),
  ]) {
    const made = await watching()
    const { server, reflector, pauses, names } = made
    server.put('a', 2)
    await until(made, () => names().includes('a101'))
    server.holdEvents()
    server.put('d', 1)
    server.watchFaults.push(fault, fault)
    server.end(fault)
    await until(made, () => server.watches.length === 4 && server.open.size === 1)
    assert.deepEqual(pauses, [100, 200, 400])
    server.deliver(1)
    await until(made, () => names().includes('d102'))
    assert.equal(server.watches.at(-1)?.resourceVersion, '101')
    assert.equal(server.lists.length, 2)
    server.end(fault)
    await until(made, () => pauses.length === 4)
    assert.equal(pauses[3], 100)
    await reflector.close()
  }
})

test('an expired version is listed anew at once, in both forms, and vanished objects are told', async () => {
  for (const form of ['status', 'event']) {
    const made = await watching()
    const { server, cache, reflector, pauses, counts, names } = made
    const told: string[] = []
    server.put('c', 2)
    await until(made, () => names().includes('c101'))
    cache.subscribe(({ key, after }) => told.push(`${key} ${after?.metadata.resourceVersion ?? 'gone'}`))
    told.length = 0
    server.holdEvents()
    server.remove('a')
    server.put('b', 2)
    server.compact()
    server.end(form === 'event' ? gone() : undefined)
    await until(made, () => server.open.size === 1 && server.watches.at(-1)?.resourceVersion === '103')
    assert.deepEqual(told, ['one/b 103', 'one/a gone'])
    assert.deepEqual(pauses, [])
    assert.equal(counts.relists, 1)
    assert.equal(reflector.state.error, undefined)
    // A version that expires as soon as it was listed is no reason to list for ever without a break.
    server.watchFaults.push(gone(), gone(), gone())
    server.end(gone())
    await until(
      made,
      () => server.watches.at(-1)?.resourceVersion === '103' && server.watchFaults.length === 0,
    )
    await until(made, () => server.open.size === 1)
    assert.deepEqual(pauses, [100, 200, 400, 800])
    await reflector.close()
  }
})

test('a continue token that expires between two pages begins the list anew', async () => {
  const made = make()
  const { server, reflector, cache, names, counts, pauses } = made
  for (const name of ['a', 'b', 'c', 'd', 'e']) server.put(name, 1)
  server.holdPages = true
  reflector.start()
  for (const page of [1, 2]) {
    await until(made, () => server.lists.length === page)
    server.page()
  }
  await until(made, () => server.lists.length === 3)
  server.remove('a')
  server.compact()
  server.holdPages = false
  server.page()
  await cache.ready
  assert.deepEqual(names(), ['b99', 'c100', 'd101', 'e102'])
  assert.deepEqual(
    server.lists.map((list) => list.continue),
    [undefined, '102 2', '102 4', undefined, '103 2'],
  )
  assert.deepEqual(counts, { restarts: 0, relists: 1 })
  assert.deepEqual(pauses, [])
  await reflector.close()
})

test('a page that fails is asked for again, and what the server asks to wait is waited', async () => {
  const made = make()
  const { server, reflector, cache, pauses } = made
  for (const name of ['a', 'b', 'c']) server.put(name, 1)
  server.listFaults.push(refusal('Unavailable', 429, { retryAfter: 3_000 }), unanswered())
  reflector.start()
  await cache.ready
  assert.deepEqual(pauses, [3_000, 200])
  await until(made, () => server.open.size === 1)
  server.holdPages = true
  server.end(gone())
  await until(made, () => server.lists.length === 5)
  server.page()
  await until(made, () => server.lists.length === 6)
  server.listFaults.push(refusal('Unavailable', 503))
  server.holdPages = false
  server.page()
  await until(made, () => server.open.size === 1)
  assert.deepEqual(
    server.lists.slice(4).map((list) => list.continue),
    [undefined, '100 2', '100 2'],
  )
  await reflector.close()
})

test('how long it waits depends on what is wrong: never long for what is about to be put right', async () => {
  const table: [Error, number][] = [
    [unanswered(), 1_000],
    [refusal('Forbidden', 403), 1_000],
    [refusal('NotFound', 404), 1_000],
    // A server that starts, whatever it asks for; and one that has too much to do.
    [refusal('Unavailable', 503, { retryAfter: 5_000 }), 1_000],
    [refusal('Unavailable', 500), 30_000],
    [refusal('Unavailable', 429, { retryAfter: 45_000 }), 45_000],
  ]
  for (const [fault, longest] of table) {
    const made = make()
    const { server, reflector, cache, pauses } = made
    server.listFaults.push(...Array.from({ length: 12 }, () => fault))
    reflector.start()
    await cache.ready
    assert.equal(Math.max(...pauses), longest, fault.message)
    await reflector.close()
  }
})

test('no permission and a missing kind stay visible until they are put right', async () => {
  const made = make()
  const { server, reflector, pauses, warnings, clock } = made
  server.holdPages = true
  reflector.start()
  for (let index = 0; index < 100; index++) {
    server.listFaults.push(refusal('NotFound', 404))
    await until(made, () => server.lists.length === index + 1)
    server.page()
    await until(made, () => pauses.length === index + 1)
  }
  assert.equal(Math.max(...pauses), 5_000)
  assert.deepEqual(reflector.state, { synced: false, error: 'refused with 404', since: 1_000 })
  assert.equal(warnings.length, 1)
  clock.now = 2_000
  server.holdPages = false
  server.page()
  await until(made, () => server.open.size === 1)
  assert.deepEqual(reflector.state, { synced: true, since: 2_000 })
  // Withdrawn, and given back: the opened watch alone says so.
  clock.now = 3_000
  const states: string[] = []
  const forbidden = refusal('Forbidden', 403)
  server.watchFaults.push(forbidden)
  server.end()
  await until(made, () => reflector.state.error !== undefined)
  states.push(JSON.stringify(reflector.state))
  clock.now = 4_000
  await until(made, () => server.open.size === 1)
  states.push(JSON.stringify(reflector.state))
  assert.deepEqual(states, [
    '{"synced":true,"error":"refused with 403","since":3000}',
    '{"synced":true,"since":4000}',
  ])
  await reflector.close()
})

test('a kind that was deleted and made again is another world', async () => {
  const made = await watching()
  const { server, reflector, names, counts } = made
  server.holdEvents()
  for (const name of ['a', 'b', 'c']) server.remove(name)
  server.watchFaults.push(refusal('NotFound', 404))
  server.listFaults.push(refusal('NotFound', 404), refusal('NotFound', 404))
  server.end()
  await until(made, () => reflector.state.error !== undefined)
  // Nothing is thought deleted because of a 404: a server that has just started may say so of anything.
  assert.deepEqual(names(), ['a98', 'b99', 'c100'])
  server.put('b', 'new')
  await until(made, () => server.open.size === 1)
  assert.deepEqual(names(), ['b104'])
  assert.equal(counts.relists, 1)
  await reflector.close()
})

test('what makes no sense is skipped; a line that nobody can read is gone round by a list', async () => {
  const made = await watching()
  const { server, reflector, names, warnings } = made
  server.say({ type: 'MODIFIED', object: { kind: 'Door' } })
  server.say({ type: 'MODIFIED', object: { kind: 'Door' } })
  await new Promise((resolve) => setImmediate(resolve))
  server.put('d', 1)
  await until(made, () => names().includes('d101'))
  assert.deepEqual(warnings, ['a watch event made no sense and is skipped'])
  server.holdEvents()
  server.put('e', 1)
  server.end(unanswered('WatchLineTooLong'))
  await until(made, () => names().includes('e102'))
  assert.equal(server.lists.at(-1)?.continue, '102 4')
  await reflector.close()
})

test('a server that fails within a watch at the very version that it goes on from: a list goes round it', async () => {
  const made = await watching()
  const { server, reflector, names, pauses } = made
  server.holdEvents()
  server.put('d', 1)
  server.end(refusal('Unavailable', 500))
  await until(made, () => names().includes('d101'))
  assert.equal(server.lists.length, 4)
  assert.deepEqual(pauses, [100])
  assert.deepEqual(reflector.state.error, undefined)
  await reflector.close()
})

test('an answer that is no list of an API server is an error, not a world', async () => {
  const made = make()
  const { server, reflector } = made
  const list = server.api.list
  const answers = [
    { resourceVersion: '' },
    { resourceVersion: 'x1' },
    { continue: '1 2' },
    { continue: '1 2' },
  ]
  const errors = new Set<string | undefined>()
  server.api.list = async (kind, options) => {
    errors.add(reflector.state.error)
    const answer = answers.shift()
    return answer === undefined ? list(kind, options) : { items: [], resourceVersion: '1', ...answer }
  }
  reflector.start()
  await until(made, () => reflector.state.synced)
  assert.deepEqual(
    [...errors].filter((error) => error !== undefined),
    [
      'the list of doors has no resourceVersion that is a decimal number: is this a Kubernetes API server?',
      'the list of doors does not get on from page to page: is this a Kubernetes API server?',
    ],
  )
  await reflector.close()
})

test('closes in the middle of a wait, with pauses that are real', async () => {
  const server = new FakeServer()
  server.listFaults.push(refusal('Unavailable', 503, { retryAfter: 60_000 }))
  const cache = new ReflectedCache<Resource>(DOOR)
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const reflector = new Reflector<Resource>({ api: server.api, kind: DOOR, cache, log })
  reflector.start()
  while (reflector.state.error === undefined) await new Promise((resolve) => setImmediate(resolve))
  await reflector.close()
  assert.equal(server.lists.length, 1)
})
