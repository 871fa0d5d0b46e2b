import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import type { Space } from './space.ts'
import { stage } from './stage.ts'

/** Watches that tear, expire, or choke under an operator at work. */

describeWithKubernetes('watches', () => {
  let one: Space
  let other: Space
  const set = stage(
    // Without its memory of these kinds the API server asks etcd, which has forgotten what was compacted.
    { apiserver: ['--watch-cache-sizes=onionservices.tor.fr0st.dev#0,services#0,configmaps#0'] },
    async (world) => {
      ;[one, other] = await world.usual('watch')
    },
  )

  for (const how of ['mid-event', 'cut-event', 'reset', 'ended'] as const) {
    test(`torn (${how}) again and again while things change`, async (t) => {
      const { world, proxy, operator } = set
      let torn = 0
      for (let round = 0; round < 5; round++) {
        torn += proxy.tear(how)
        await one.onion(`${how}-${round}`)
        await other.onion('web', { ports: { [8000 + round]: { service: 'web', port: 80 } } })
        await other.service(`${how}-${round}`)
        torn += proxy.tear(how, 'onionservices')
        if (round > 0) await one.removeOnion(`${how}-${round - 1}`)
      }
      assert.ok(torn > 10, `${torn} watches torn`)
      await world.settled(t, operator, proxy, performance.now(), `${torn} watches torn`)
    })
  }

  test('etcd is compacted, and the versions that watches go on from are gone', async (t) => {
    const { world, proxy, operator } = set
    proxy.blackHole = 'watches'
    assert.ok(proxy.tear('reset') > 8)
    const [lists, logged] = [operator.relists.length, operator.log.length]
    await one.onion('unseen')
    await one.removeOnion('blog')
    await other.service('shop')
    await other.onion('web', { ports: { 80: { service: 'shop', port: 80 } } })
    await world.bed.etcd.compact()
    const since = performance.now()
    proxy.blackHole = undefined
    proxy.cutHeld()
    await world.settled(t, operator, proxy, since, 'etcd compacted')
    const again = operator.relists.slice(lists)
    assert.ok(again.includes('onionservices') && again.includes('services'), `listed again: ${again}`)
    const complaints = operator.log
      .slice(logged)
      .filter(({ error }) => /too old|expired/i.test(String(error)))
    assert.deepEqual(complaints, [], 'an expired version is the usual course of things')
  })

  test('an event of 5 MB is read; one of 9 MB is not, and a list finds it', async (t) => {
    const { world, proxy, operator } = set
    const lists = operator.relists.length
    assert.equal(proxy.pad('onionservices', 5_000_000), 1)
    await one.onion('large-5')
    await world.settled(t, operator, proxy, performance.now(), 'an event of 5 MB')
    assert.deepEqual(operator.relists.slice(lists), [])

    assert.equal(proxy.pad('onionservices', 9_000_000), 1)
    await one.onion('large-9')
    await one.removeOnion('large-5')
    await world.settled(t, operator, proxy, performance.now(), 'an event of 9 MB')
    assert.deepEqual(operator.relists.slice(lists), ['onionservices'])
    const told = operator.lines('warn').filter(({ error }) => /line of more than 8 MiB/.test(String(error)))
    assert.equal(told.length, 1)
  })
})
