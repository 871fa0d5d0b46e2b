import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { run } from '../../testbed/kubernetes/run.ts'
import { eventually, none, seconds } from './eventually.ts'
import { Operator } from './operator.ts'
import type { Space } from './space.ts'
import { stage } from './stage.ts'

/** Connections that are open and dead; clocks that jump. */

describeWithKubernetes('silence', () => {
  let one: Space
  // So that a watch that hangs is noticed after some 20 s, not after five minutes.
  const set = stage({ watchSeconds: 5 }, async (world) => {
    ;[one] = await world.usual('silence')
  })

  test('watches stay open and say nothing: that is noticed at their deadline', async (t) => {
    const { world, proxy, operator } = set
    const silenced = proxy.silenceWatches()
    assert.ok(silenced > 8, `${silenced} watches`)
    const since = performance.now()
    await one.onion('in-silence')
    await world.settled(t, operator, proxy, since, `${silenced} silent watches`)
  })

  test('nothing is answered at all: requests and watches end at their limits', async (t) => {
    const { world, proxy, operator } = set
    proxy.blackHole = 'everything'
    proxy.silenceWatches()
    await one.onion('unanswered')
    proxy.tear('reset', 'onionservices')
    await eventually('a request to be given up', () => {
      const said = operator.troubles()
      return (
        said.some((line) => /onionservices: .*(no answer|no whole answer|did not end)/.test(line)) || said
      )
    })
    proxy.blackHole = undefined
    const since = performance.now()
    proxy.cutHeld()
    await world.settled(t, operator, proxy, since, 'answered again')
  })

  test('the network drops every packet: the kernel notices, and all comes back', async (t) => {
    const { world } = set
    const { namespace, hostAddress } = world.bed.network
    if (namespace === undefined) return t.skip('needs a network namespace')
    await using direct = await Operator.start(world.access.kubeconfig)
    const route = (verb: 'add' | 'del'): Promise<string> =>
      run('ip', ['-n', namespace, 'route', verb, 'blackhole', `${hostAddress}/32`])
    const cut = performance.now()
    await route('add')
    try {
      await eventually('every watch to be given up', () =>
        none(direct.states().flatMap(({ name, error }) => (error === undefined ? [`${name} goes on`] : []))),
      )
      t.diagnostic(`packets dropped: noticed after ${seconds(performance.now() - cut)}`)
    } finally {
      await route('del')
    }
    const back = performance.now()
    await eventually('everything to be followed', () => none(direct.troubles()))
    t.diagnostic(`packets pass: followed again after ${seconds(performance.now() - back)}`)
    await one.onion('after-the-cut')
    await world.declared()
  })

  test('the wall clock jumps by a day, forth and back', async (t) => {
    const { world, proxy } = set
    let jump = 0
    const { now } = Date
    t.mock.method(Date, 'now', () => now() + jump)
    await using operator = await Operator.start(proxy.kubeconfig)
    for (const [index, day] of [86_400_000, -86_400_000, 0].entries()) {
      jump = day
      proxy.tear(index === 1 ? 'ended' : 'reset')
      await one.onion(`jump-${index}`)
      await one.service(`jump-${index}`)
      await world.settled(t, operator, proxy, performance.now(), `clock off by ${day / 3_600_000} h`)
    }
  })
})
