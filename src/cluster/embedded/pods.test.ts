import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Resource } from '../../core/resource.ts'
import { DEPLOYMENT, ENDPOINT_SLICE, POD, type Pod } from '../kinds.ts'
import { findMarked, STATE_MARKER } from './pod-leftovers.ts'
import { PodRunner } from './pods.ts'
import { deployment, MemoryCluster, PROGRAM } from './pods-fixture.ts'

interface Told {
  pid: number
  child?: number
  argv: string[]
  env: Record<string, string>
  cwd: string
}

const root = mkdtempSync(join(tmpdir(), 'pods-'))
const script = join(root, 'agent.mjs')
let count = 0
let state = ''
let cluster = new MemoryCluster()
let runner: PodRunner

before(() => writeFileSync(script, PROGRAM))
after(() => rmSync(root, { recursive: true, force: true }))

async function until<T>(what: string, probe: () => T | undefined | false, seen?: () => unknown): Promise<T> {
  for (const end = Date.now() + 20_000; ; await sleep(20)) {
    try {
      const value = probe()
      if (value !== undefined && value !== false) return value
    } catch (error) {
      if (Date.now() > end) throw error
    }
    if (Date.now() > end) assert.fail(`never seen: ${what}; last: ${JSON.stringify(seen?.())}`)
  }
}

function podOf(name: string): Pod | undefined {
  return cluster.cache(POD).get(`shop/${name}`)
}

function waiting(name: string): { reason?: string; message?: string } | undefined {
  return podOf(name)?.status?.containerStatuses?.[0]?.state?.waiting
}

function ready(name: string): Promise<Pod> {
  const isReady = (pod: Pod | undefined): boolean =>
    pod?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  return until(
    `${name} ready`,
    () => isReady(podOf(name)) && podOf(name)!,
    () => podOf(name)?.status,
  )
}

function claim(name: string): string {
  return join(state, 'claims', 'shop', `${name}-data`)
}

/** What the program was given, once it says something else than before. */
function told(name: string, not?: number): Promise<Told> {
  return until(`${name} told`, () => {
    try {
      const said = JSON.parse(readFileSync(join(claim(name), 'out.json'), 'utf8')) as Told
      return said.pid !== not && said
    } catch {
      return undefined
    }
  })
}

function alive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

function configMap(name: string, data: Record<string, string>): Resource {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'shop' }, data }
}

function secret(name: string, data: Record<string, string>): Resource {
  const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'shop' },
    data: Object.fromEntries(encoded),
  }
}

function readiness(path: string): Record<string, unknown> {
  return { httpGet: { path, port: 'metrics' }, periodSeconds: 0.1, failureThreshold: 2 }
}

function service(name: string, app: string): Resource {
  const spec = { selector: { app }, ports: [{ name: 'http', port: 80, targetPort: 'metrics' }] }
  return { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'shop' }, spec }
}

describe('PodRunner', () => {
  beforeEach(async () => {
    state = join(root, String(count++))
    cluster = new MemoryCluster()
    runner = new PodRunner({ cluster, state, programs: { agent: [process.execPath, script] } })
    await runner.start()
  })

  afterEach(async () => {
    await runner.close()
    assert.deepEqual(findMarked([`${STATE_MARKER}=${state}`]), [])
  })

  it('gives a pod its address, environment, arguments and files', async () => {
    await cluster.apply(configMap('settings', { 'a.json': '{}', level: 'debug' }))
    await cluster.apply(secret('keys', { key: 'hidden', extra: 'more' }))
    await cluster.apply(
      deployment('web', {
        args: [
          '--config=/etc/app/a.json',
          '/etc/application',
          '$(LEVEL)',
          '$$(LEVEL)',
          '/run/app/sub/s.sock',
        ],
        env: [
          { name: 'LEVEL', valueFrom: { configMapKeyRef: { name: 'settings', key: 'level' } } },
          { name: 'KEY', valueFrom: { secretKeyRef: { name: 'keys', key: 'key' } } },
          { name: 'NONE', valueFrom: { secretKeyRef: { name: 'keys', key: 'none', optional: true } } },
          { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } },
          { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
          { name: 'MEMORY', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
          { name: 'SOCKET', value: 'unix:/run/app/sub/x.sock' },
        ],
        mounts: [
          { name: 'settings', mountPath: '/etc/app' },
          { name: 'keys', mountPath: '/etc/keys/' },
          { name: 'run', mountPath: '/run/app' },
          { name: 'run', mountPath: '/run/app/sub', subPath: 'deep/er' },
        ],
        volumes: [
          { name: 'settings', configMap: { name: 'settings' } },
          { name: 'keys', secret: { secretName: 'keys', items: [{ key: 'key', path: 'in/side.key' }] } },
          { name: 'run', emptyDir: {} },
          {
            name: 'all',
            projected: {
              sources: [
                { configMap: { name: 'settings', items: [{ key: 'level', path: 'level' }] } },
                { secret: { name: 'keys' } },
                { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
              ],
            },
          },
        ],
        container: { resources: { limits: { memory: '64Mi' } } },
      }),
    )
    const { env, argv, cwd } = await told('web')
    const pod = await ready('web-0')
    const volumes = join(state, 'p', '1', 'v')
    assert.match(env.POD_IP!, /^127\.77\.\d+\.\d+$/)
    assert.equal(pod.status?.podIP, env.POD_IP)
    assert.deepEqual(
      [env.LEVEL, env.KEY, env.NONE, env.NAME, env.UID, env.APP, env.MEMORY],
      ['debug', 'hidden', undefined, 'web-0', pod.metadata.uid, 'web', String(64 * 2 ** 20)],
    )
    assert.equal(env.SOCKET, `unix:${volumes}/run/deep/er/x.sock`)
    assert.deepEqual(argv.slice(1), [
      `--config=${volumes}/settings/a.json`,
      '/etc/application',
      'debug',
      '$(LEVEL)',
      `${volumes}/run/deep/er/s.sock`,
    ])
    assert.equal(cwd, join(state, 'p', '1'))
    assert.equal(env.NODE_TEST_CONTEXT, undefined, 'nothing of our own environment')
    assert.equal(readFileSync(join(volumes, 'keys/in/side.key'), 'utf8'), 'hidden')
    const mode = (file: string): number => statSync(join(volumes, file)).mode & 0o777
    assert.deepEqual([mode('keys/in/side.key'), mode('keys')], [0o600, 0o700])
    assert.ok(!existsSync(join(volumes, 'keys/extra')))
    const all = ['name', 'extra', 'level'].map((file) => readFileSync(join(volumes, 'all', file), 'utf8'))
    assert.deepEqual(all, ['web-0', 'more', 'debug'])
    await until('log', () => readFileSync(runner.logFile('shop', 'web-0'), 'utf8').includes('begun'))
    assert.equal(pod.metadata.ownerReferences?.[0]?.name, 'web')
    const status = await until('deployment ready', () => {
      const found = cluster.cache(DEPLOYMENT).get('shop/web')?.status as Record<string, unknown> | undefined
      return found?.readyReplicas === 1 && found
    })
    assert.deepEqual([status.observedGeneration, status.replicas], [1, 1])
  })

  it('updates files while the pod runs, and removes what is gone', async () => {
    await cluster.apply(configMap('settings', { a: 'one', b: 'two' }))
    const volumes = [{ name: 'settings', configMap: { name: 'settings' } }]
    await cluster.apply(deployment('web', { volumes }))
    await ready('web-0')
    const { pid } = await told('web')
    const folder = join(state, 'p', '1', 'v', 'settings')
    assert.equal(readFileSync(join(folder, 'b'), 'utf8'), 'two')
    await cluster.apply(configMap('settings', { a: 'changed', c: 'new' }))
    assert.equal(readFileSync(join(folder, 'a'), 'utf8'), 'changed')
    assert.equal(readFileSync(join(folder, 'c'), 'utf8'), 'new')
    assert.ok(!existsSync(join(folder, 'b')))
    await cluster.remove({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'settings' })
    assert.equal(readFileSync(join(folder, 'a'), 'utf8'), 'changed', 'kept, as in a cluster')
    assert.equal((await told('web')).pid, pid)
    assert.equal(podOf('web-0')?.status?.containerStatuses?.[0]?.restartCount, 0)
  })

  it('waits for a missing Secret and starts when it appears', async () => {
    const volumes = [{ name: 'keys', secret: { secretName: 'keys' } }]
    await cluster.apply(deployment('web', { volumes }))
    const state = await until('waiting', () => waiting('web-0'))
    assert.equal(state.reason, 'CreateContainerConfigError')
    assert.match(state.message ?? '', /Secret shop\/keys/)
    await cluster.apply(secret('keys', { key: 'hidden' }))
    await ready('web-0')
  })

  it('refuses paths that leave the volume', async () => {
    await cluster.apply(configMap('settings', { a: 'one' }))
    const items = [{ key: 'a', path: '../../escaped' }]
    await cluster.apply(
      deployment('web', { volumes: [{ name: 's', configMap: { name: 'settings', items } }] }),
    )
    const state = await until('waiting', () => waiting('web-0'))
    assert.match(state.message ?? '', /no path inside a volume/)
  })

  it('restarts what crashes, with the exit code, the last line and no child left', async () => {
    await cluster.apply(deployment('web', { args: ['crash', 'child'] }))
    const first = await told('web')
    const held = await until(
      'back-off',
      () => waiting('web-0')?.reason === 'CrashLoopBackOff' && waiting('web-0'),
      () => podOf('web-0')?.status,
    )
    assert.match(held.message ?? '', /exited with code 3; last line: no such luck/)
    assert.ok(!alive(first.child!), 'a child that left the group is gone as well')
    await told('web', first.pid)
    await until('counted', () => (podOf('web-0')?.status?.containerStatuses?.[0]?.restartCount ?? 0) >= 1)
  })

  it('keeps emptyDir over a restarted container', async () => {
    await cluster.apply(
      deployment('web', {
        volumes: [{ name: 'run', emptyDir: {} }],
        container: {
          startupProbe: { ...readiness('/'), failureThreshold: 300 },
          livenessProbe: { ...readiness('/livez'), failureThreshold: 1 },
        },
      }),
    )
    await ready('web-0')
    const first = await told('web')
    const kept = join(state, 'p', '1', 'v', 'run', 'kept')
    writeFileSync(kept, '')
    writeFileSync(join(claim('web'), 'dead'), '')
    await until('restarted', () => /liveness probe \(HTTP 503\)/.test(waiting('web-0')?.message ?? ''))
    rmSync(join(claim('web'), 'dead'))
    await told('web', first.pid)
    await ready('web-0')
    assert.ok(existsSync(kept))
  })

  it('follows readiness into the pod, the deployment and the EndpointSlice', async () => {
    mkdirSync(claim('web'), { recursive: true })
    writeFileSync(join(claim('web'), 'unready'), '')
    await cluster.apply(service('front', 'web'))
    await cluster.apply(deployment('web', { container: { readinessProbe: readiness('/readyz') } }))
    const slice = (): ReturnType<typeof read> => read()
    const read = () => cluster.cache(ENDPOINT_SLICE).get('shop/front-postern')
    await until(
      'probe says why',
      () => podOf('web-0')?.status?.conditions?.some(({ message }) => message?.includes('HTTP 503')),
      () => podOf('web-0')?.status,
    )
    await until('not ready in slice', () => slice()?.endpoints?.[0]?.conditions?.ready === false)
    rmSync(join(claim('web'), 'unready'))
    const pod = await ready('web-0')
    await until('ready in slice', () => slice()?.endpoints?.[0]?.conditions?.ready === true, slice)
    assert.deepEqual(slice()?.endpoints?.[0]?.addresses, [pod.status?.podIP])
    assert.deepEqual(slice()?.ports, [{ name: 'http', port: 9080, protocol: 'TCP' }])
    assert.equal(slice()?.metadata.labels?.['kubernetes.io/service-name'], 'front')
    assert.equal(slice()?.metadata.ownerReferences?.[0]?.name, 'front')
    const writes = cluster.statusWrites.length
    await cluster.apply(configMap('unrelated', { a: 'b' }))
    writeFileSync(join(claim('web'), 'unready'), '')
    await until('unready again', () => slice()?.endpoints?.[0]?.conditions?.ready === false)
    assert.ok(cluster.statusWrites.length - writes <= 3, 'writes only what changed')
  })

  it('replaces a pod whose template changed, and no other', async () => {
    await cluster.apply(deployment('web', { volumes: [{ name: 'run', emptyDir: {} }] }))
    const old = await ready('web-0')
    const first = await told('web')
    const kept = join(state, 'p', '1', 'v', 'run', 'kept')
    writeFileSync(kept, '')
    const annotations = { 'sync.postern.dev/topology': '7' }
    await cluster.apply(deployment('web', { volumes: [{ name: 'run', emptyDir: {} }], annotations }))
    await until(
      'annotated',
      () => podOf('web-0')?.metadata.annotations?.['sync.postern.dev/topology'] === '7',
    )
    assert.equal(podOf('web-0')?.metadata.uid, old.metadata.uid)
    assert.ok(alive(first.pid))
    await cluster.apply(deployment('web', { args: ['new'], volumes: [{ name: 'run', emptyDir: {} }] }))
    const second = await told('web', first.pid)
    const pod = await ready('web-0')
    assert.notEqual(pod.metadata.uid, old.metadata.uid)
    assert.equal(second.env.POD_IP, first.env.POD_IP)
    assert.equal(second.argv[1], 'new')
    assert.ok(!alive(first.pid))
    assert.ok(!existsSync(kept), 'a new pod has a fresh emptyDir')
  })

  it('scales, and ends the pods of a deleted deployment but keeps its claims', async () => {
    await cluster.apply(deployment('web', { replicas: 2 }))
    const addresses = new Set([(await ready('web-0')).status?.podIP, (await ready('web-1')).status?.podIP])
    assert.equal(addresses.size, 2)
    await told('web')
    await cluster.apply(deployment('web', { replicas: 1 }))
    await until('scaled down', () => podOf('web-1') === undefined)
    assert.ok(podOf('web-0'))
    await cluster.remove({ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' })
    await until('ended', () => findMarked([`${STATE_MARKER}=${state}`]).length === 0)
    await until('folder gone', () => !existsSync(join(state, 'p', '1')) && !existsSync(join(state, 'p', '2')))
    assert.equal(podOf('web-0'), undefined)
    assert.ok(existsSync(join(claim('web'), 'out.json')))
  })

  it('brings a deleted Pod back as a new one', async () => {
    await cluster.apply(deployment('web'))
    const old = await ready('web-0')
    const first = await told('web')
    await cluster.remove({ apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web-0' })
    await told('web', first.pid)
    assert.notEqual((await ready('web-0')).metadata.uid, old.metadata.uid)
    assert.ok(!alive(first.pid))
  })

  it('says plainly what runs only in a cluster, and harms no other pod', async () => {
    await cluster.apply(deployment('odd', { container: { command: ['no-such-program'] } }))
    await cluster.apply(deployment('csi', { volumes: [{ name: 'x', hostPath: { path: '/' } }] }))
    await cluster.apply(deployment('web'))
    const odd = await until('odd waits', () => waiting('odd-0'))
    assert.equal(odd.reason, 'ErrImagePull')
    assert.match(odd.message ?? '', /"no-such-program".*runs only in a cluster/)
    const csi = await until('csi waits', () => waiting('csi-0'))
    assert.match(csi.message ?? '', /hostPath, which exists only in a cluster/)
    await ready('web-0')
    assert.equal(podOf('odd-0')?.status?.containerStatuses?.[0]?.restartCount, 0)
  })

  it('starts the same pods again after a close, at their addresses', async () => {
    await cluster.apply(deployment('web'))
    const before = await ready('web-0')
    const first = await told('web')
    await runner.close()
    assert.ok(!alive(first.pid))
    assert.equal(waiting('web-0')?.reason, 'Stopped')
    runner = new PodRunner({ cluster, state, programs: { agent: [process.execPath, script] } })
    await runner.start()
    const second = await told('web', first.pid)
    assert.equal(second.env.POD_IP, first.env.POD_IP)
    assert.equal((await ready('web-0')).metadata.uid, before.metadata.uid)
  })

  it('leaves no process behind when it is killed', async () => {
    await runner.close()
    const parent = spawn(
      process.execPath,
      [fileURLToPath(new URL('pods-fixture-parent.ts', import.meta.url)), state, script],
      { stdio: 'inherit' },
    )
    const first = await told('orphan')
    assert.ok(alive(first.child!))
    parent.kill('SIGKILL')
    await until('the pod goes with its parent', () => !alive(first.pid))
    runner = new PodRunner({ cluster, state, programs: { agent: [process.execPath, script] } })
    await runner.start()
    assert.ok(!alive(first.child!), 'and the next start ends what the pod had started')
  })

  it('refuses a state folder that leaves no room for sockets', () => {
    const long = join(root, 'x'.repeat(80))
    assert.throws(() => new PodRunner({ cluster, state: long, programs: {} }), { code: 'StatePathTooLong' })
  })
})
