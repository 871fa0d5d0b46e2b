import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { OperatorMetrics } from './metrics.ts'
import { WorkQueue } from './queue.ts'

/** Samples of Prometheus' text format by `name{labels}`; refuses lines that are not of that format. */
async function scrape(registry: Registry): Promise<Map<string, number>> {
  const samples = new Map<string, number>()
  const typed = new Map<string, string>()
  for (const line of (await registry.metrics()).split('\n')) {
    if (line === '' || line.startsWith('# HELP ')) continue
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line)
    if (type !== null) {
      typed.set(type[1]!, type[2]!)
      continue
    }
    const sample = /^([a-z_]+)(\{(?:[a-z]+="[^"\\\n]*",?)*\})? (\S+)$/.exec(line)
    assert.ok(sample, `not a sample: ${line}`)
    const [, name = '', labels = '', value = ''] = sample
    assert.ok(typed.has(name) || typed.has(name.replace(/_(bucket|sum|count)$/, '')), `${name} has no type`)
    assert.ok(!Number.isNaN(Number(value)), line)
    assert.ok(!samples.has(name + labels), `${name}${labels} twice`)
    samples.set(name + labels, Number(value))
  }
  return samples
}

function make(): { registry: Registry; metrics: OperatorMetrics; time: { now: number } } {
  const registry = new Registry()
  const time = { now: 100 }
  return {
    registry,
    time,
    metrics: new OperatorMetrics({ registry, version: '1.2.3', clock: () => time.now }),
  }
}

test('a queue is seen at work: what waits, what is worked on, how long, and how it ended', async () => {
  const { registry, metrics, time } = make()
  const gates = new Map<string, PromiseWithResolvers<number | undefined>>()
  const began = new Map<string, PromiseWithResolvers<void>>()
  for (const key of ['good', 'bad', 'later', 'late']) {
    gates.set(key, Promise.withResolvers())
    began.set(key, Promise.withResolvers())
  }
  const observer = metrics.controller('tor')
  const queue = new WorkQueue(
    (key) => {
      began.get(key)!.resolve()
      return gates.get(key)!.promise
    },
    () => {},
    { concurrency: 2, minBackoff: 3_600_000, maxBackoff: 3_600_000, observer },
  )
  for (const key of ['good', 'bad', 'later', 'later', 'late']) queue.add(key)
  await Promise.all([began.get('good')!.promise, began.get('bad')!.promise])
  time.now += 3
  queue.add('good')
  queue.add('good')
  let seen = await scrape(registry)
  const at = (name: string, labels = '{name="tor"}'): number | undefined =>
    seen.get(`postern_${name}${labels}`)
  const ours = '{controller="tor"}'
  assert.equal(at('controller_max_concurrent_reconciles', ours), 2)
  assert.equal(at('controller_active_workers', ours), 2)
  assert.equal(at('workqueue_depth'), 3)
  assert.equal(at('workqueue_adds_total'), 5)
  assert.equal(at('workqueue_unfinished_work_seconds'), 6)
  assert.equal(at('workqueue_longest_running_processor_seconds'), 3)
  assert.equal(at('controller_reconcile_errors_total', ours), 0)

  gates.get('bad')!.reject(new Error('no'))
  gates.get('later')!.resolve(3_600_000)
  await began.get('later')!.promise
  await began.get('late')!.promise
  gates.get('good')!.resolve(undefined)
  gates.get('late')!.resolve(undefined)
  while (queue.length > 0) await new Promise((resolve) => setImmediate(resolve))
  observer.wrote?.(4)
  seen = await scrape(registry)
  assert.equal(at('controller_reconcile_total', '{controller="tor",result="success"}'), 3)
  assert.equal(at('controller_reconcile_total', '{controller="tor",result="requeue_after"}'), 1)
  assert.equal(at('controller_reconcile_total', '{controller="tor",result="error"}'), 1)
  assert.equal(at('controller_reconcile_errors_total', ours), 1)
  assert.equal(at('controller_reconcile_time_seconds_count', ours), 5)
  assert.equal(at('controller_writes_total', ours), 4)
  assert.equal(at('controller_active_workers', ours), 0)
  assert.equal(at('workqueue_retries_total'), 1)
  assert.equal(at('workqueue_depth'), 0)
  assert.equal(at('workqueue_queue_duration_seconds_count'), 5)
  assert.equal(at('workqueue_work_duration_seconds_count'), 5)
  assert.equal(at('workqueue_longest_running_processor_seconds'), 0)
  await queue.close()
})

test('what a closed queue gives up waits no more', async () => {
  const { registry, metrics } = make()
  const gate = Promise.withResolvers<undefined>()
  const queue = new WorkQueue(
    () => gate.promise,
    () => {},
    { concurrency: 1, observer: metrics.controller('tor') },
  )
  for (const key of ['a', 'b', 'c']) queue.add(key)
  queue.add('a')
  const closed = queue.close()
  gate.resolve(undefined)
  await closed
  const seen = await scrape(registry)
  assert.equal(seen.get('postern_workqueue_depth{name="tor"}'), 0)
  assert.equal(seen.get('postern_controller_active_workers{controller="tor"}'), 0)
})

test('labels are bounded, whatever comes in', async () => {
  const { registry, metrics } = make()
  metrics.request('GET', '200', 0.01)
  metrics.request('GET', 'error', 0.01)
  metrics.request('GET', 'ECONNRESET', 0.01)
  metrics.request('BREW', '99999', 0.01)
  metrics.leads('postern', true)
  metrics.watchRestarted('pods')
  metrics.relisted('pods')
  const seen = await scrape(registry)
  const requests = [...seen].filter(([name]) => name.startsWith('postern_rest_client_requests_total'))
  assert.deepEqual(requests, [
    ['postern_rest_client_requests_total{code="200",method="GET"}', 1],
    ['postern_rest_client_requests_total{code="error",method="GET"}', 2],
    ['postern_rest_client_requests_total{code="error",method="other"}', 1],
  ])
  assert.equal(seen.get('postern_leader_election_master_status{name="postern"}'), 1)
  assert.equal(seen.get('postern_watch_restarts_total{kind="pods"}'), 1)
  assert.equal(seen.get('postern_watch_relists_total{kind="pods"}'), 1)
  assert.equal(seen.get(`postern_build_info{version="1.2.3",node="${process.versions.node}"}`), 1)
})

test('names and helps are as Prometheus asks: prefix, base units, a sentence', async () => {
  const { registry } = make()
  const all = registry.getMetricsAsArray() as unknown as { name: string; help: string; type: string }[]
  assert.equal(all.length, 19)
  for (const { name, help, type } of all) {
    assert.match(name, /^postern_[a-z]+(_[a-z]+)*$/)
    assert.equal(name.endsWith('_total'), String(type) === 'counter', name)
    assert.match(help, /^[A-Z0-9].*\.$/, name)
  }
})
