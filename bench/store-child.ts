import { readFileSync } from 'node:fs'
import { EmbeddedCluster } from '../src/cluster/embedded/cluster.ts'
import { Store } from '../src/cluster/embedded/store.ts'
import type { Kind, Resource } from '../src/core/resource.ts'

const KIND: Kind = { apiVersion: 'bench.postern.dev/v1', kind: 'Door', plural: 'doors', namespaced: true }
const COUNT = 10_000
const BATCH = 50

const [step, folder] = process.argv.slice(2)
const store = new Store(folder!)
const cluster = new EmbeddedCluster(store, [KIND])
const figures = step === 'fill' ? await fill() : await load()
console.log(JSON.stringify(figures))
cluster.close()
store.close()

async function fill(): Promise<Record<string, number>> {
  const singles = COUNT / 10
  let started = performance.now()
  for (let index = 0; index < singles; index++) write(index)
  const single = ((2 * singles) / (performance.now() - started)) * 1000
  started = performance.now()
  for (let from = singles; from < COUNT; from += BATCH) {
    store.batch(() => {
      for (let index = from; index < from + BATCH; index++) write(index)
    })
  }
  return { single, batched: ((2 * (COUNT - singles)) / (performance.now() - started)) * 1000 }
}

async function load(): Promise<Record<string, number>> {
  let started = performance.now()
  const cache = cluster.cache(KIND)
  await cache.ready
  const list = performance.now() - started
  if (cache.list().length !== COUNT) throw new Error(`only ${cache.list().length} objects`)
  cache.index('service', (object) => [String((object.spec as { service?: string }).service)])
  const before = store.revision
  started = performance.now()
  for (let index = 0; index < COUNT; index++) write(index)
  const noop = ((2 * COUNT) / (performance.now() - started)) * 1000
  // After the peak, as a process that has been up for a while.
  await new Promise((resolve) => setTimeout(resolve, 500))
  return { list, noop, writes: store.revision - before, rss: rss() }
}

function write(index: number): void {
  store.apply(object(index), 'bench')
  store.applyStatus(
    { ref: { ...KIND, namespace: `space-${index % 50}`, name: `door-${index}` }, status: status(index) },
    'bench',
  )
}

/** With its status about 2.3 kB, as the objects of the figures that this is compared with. */
function object(index: number): Resource {
  return {
    apiVersion: KIND.apiVersion,
    kind: KIND.kind,
    metadata: {
      namespace: `space-${index % 50}`,
      name: `door-${index}`,
      labels: { 'app.kubernetes.io/name': `app-${index % 100}`, 'app.kubernetes.io/part-of': 'bench' },
      annotations: { 'postern.dev/source': `space-${index % 50}/door-${index}.yaml` },
    },
    spec: {
      service: `service-${index % 500}`,
      ports: Array.from({ length: 8 }, (_, port) => ({
        virtualPort: 80 + port,
        backend: { service: `service-${index}-${port}`, port: 8080 + port },
      })),
      options: { description: `${index} `.repeat(40).slice(0, 150), replicas: 1, paused: false },
    },
  }
}

function status(index: number): Record<string, unknown> {
  return {
    address: `${String(index).padStart(56, 'a')}.onion`,
    observedGeneration: 1,
    conditions: ['Ready', 'KeyValid', 'BackendReady', 'Published', 'Reachable'].map((type) => ({
      type,
      status: 'True',
      reason: 'AsItShouldBe',
      message: `Door number ${index} is as it should be, as far as ${type} goes.`,
      lastTransitionTime: '2026-01-01T00:00:00Z',
      observedGeneration: 1,
    })),
  }
}

/** What the kernel says, in MB. */
function rss(): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
  return Math.round(Number(kilobytes) / 1024)
}
