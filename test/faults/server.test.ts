import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, none, seconds } from './eventually.ts'
import type { Storm } from './fault-proxy.ts'
import type { Operator } from './operator.ts'
import type { Space } from './space.ts'
import { stage } from './stage.ts'

/** An API server that is away, slow, overloaded, broken, or not one at all. */

describeWithKubernetes('the API server', () => {
  let one: Space
  let other: Space
  const set = stage({}, async (world) => {
    ;[one, other] = await world.usual('server')
  })

  const lossNoticed = (operator: Operator): Promise<number> =>
    eventually('the loss of all watches to be noticed', () =>
      none(operator.states().flatMap(({ name, error }) => (error === undefined ? [`${name} goes on`] : []))),
    )

  test('is killed and comes back', async (t) => {
    const { world, proxy, operator } = set
    await world.bed.apiserver.kill()
    await lossNoticed(operator)
    await world.bed.apiserver.start()
    const since = performance.now()
    await eventually('everything to be followed', () => none(operator.troubles()))
    t.diagnostic(`API server back: followed again after ${seconds(performance.now() - since)} (bar: < 2 s)`)
    const change = performance.now()
    await one.onion('after-restart')
    await world.settled(t, operator, proxy, change, 'a change after its return')
  })

  test('loses etcd for a while', async (t) => {
    const { world, proxy, operator } = set
    await world.bed.etcd.kill()
    proxy.tear('reset')
    const calls = proxy.calls.length
    const declared = eventually('it to take changes again', async (): Promise<true> => {
      await one.onion('without-etcd')
      return true
    })
    try {
      await eventually('watches to be tried', () => proxy.calls.length > calls || ['none'])
    } finally {
      await world.bed.etcd.start()
    }
    const since = performance.now()
    await declared
    await world.settled(t, operator, proxy, since, 'etcd back')
  })

  const storms: (Storm & { called: string })[] = [
    { called: '429 without Retry-After', status: 429 },
    { called: '429 with Retry-After: 3', status: 429, retryAfter: 3 },
    { called: '500', status: 500 },
    { called: '503 for two of three requests', status: 503, share: 2 / 3 },
  ]
  for (const [index, { called, ...storm }] of storms.entries()) {
    test(`answers with ${called}`, async (t) => {
      const { world, proxy, operator } = set
      proxy.forget()
      proxy.storm = storm
      proxy.tear('reset')
      await one.onion(`storm-${index}`)
      await other.onion('web', { ports: { [9000 + index]: { service: 'web', port: 80 } } })
      await other.proxy('irc', [6000 + index])
      await sleep(6_000)
      const during = proxy.calls.length
      proxy.storm = undefined
      const since = performance.now()
      t.diagnostic(`${during} requests in the 6 s of the storm`)
      // A dozen kinds are followed and two keys are worked on: each may try some times.
      if (storm.share === undefined) assert.ok(during < 400, JSON.stringify(proxy.counts()))
      await world.settled(t, operator, proxy, since, `after the storm (${called})`)
    })
  }

  test('takes 2 s to answer', async (t) => {
    const { world, proxy, operator } = set
    proxy.latency = 2_000
    proxy.tear('ended')
    const since = performance.now()
    await one.onion('slow')
    await one.onion('slow', { ports: { 81: { service: 'web', port: 80 } } })
    await other.removeOnion('blog')
    await world.settled(t, operator, proxy, since, 'with 2 s of latency')
    proxy.latency = 0
  })

  test('refuses connections', async (t) => {
    const { world, proxy, operator } = set
    await proxy.refuseConnections()
    await one.onion('refused')
    await eventually('every watch to be refused', () => {
      const refused = /no answer from https:\/\/127.0.0.1:\d+ \(ECONNREFUSED\)/
      return none(operator.states().flatMap(({ name, error }) => (refused.test(error ?? '') ? [] : [name])))
    })
    await proxy.acceptConnections()
    await world.settled(t, operator, proxy, performance.now(), 'connections taken again')
  })

  test('is a page that asks for a log-in', async (t) => {
    const { world, proxy, operator } = set
    proxy.html = true
    proxy.tear('reset')
    await one.onion('html')
    await eventually('it to be said', () => {
      const said = operator.troubles()
      return said.some((line) => /text\/html.*Please log in.*is it the API server/.test(line)) || said
    })
    proxy.html = false
    await world.settled(t, operator, proxy, performance.now(), 'the API server again')
  })
})
