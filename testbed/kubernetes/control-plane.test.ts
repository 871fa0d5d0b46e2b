import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { actAsServiceAccount, type KubernetesAccess } from './access.ts'
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts'
import { kubectl } from './kubectl.ts'
import { describeWithKubernetes } from './left-out.ts'
import { openNetwork } from './netns.ts'
import { run } from './run.ts'
import { namespace, sharedKubernetes } from './shared.ts'

const claims = '/run/postern-testbed'
const withRoot = process.getuid?.() === 0 ? {} : { skip: 'needs root' }

/** A control plane of the test's own, which may be broken. */
async function own(options: Omit<ControlPlaneOptions, 'state'> = {}): Promise<ControlPlane> {
  const state = await mkdtemp(join(tmpdir(), 'ptk-'))
  try {
    const started = await startControlPlane({ state, ...options })
    const stop = async () => {
      await started.stop()
      await rm(state, { recursive: true, force: true })
    }
    return { ...started, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await rm(state, { recursive: true, force: true })
    throw error
  }
}

/** GET as admin. */
async function get(access: KubernetesAccess, path: string): Promise<{ status: number; body: string }> {
  const [ca, cert, key] = await Promise.all(
    [access.ca, access.adminCertificate, access.adminKey].map((file) => readFile(file)),
  )
  return await new Promise((resolve, reject) => {
    const asked = request(access.url + path, { ca, cert, key, agent: false, timeout: 20_000 }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body })).on('error', reject)
    })
    asked.on('timeout', () => asked.destroy(new Error(`no end of the answer to ${path}`)))
    asked.on('error', reject).end()
  })
}

async function until(what: string, check: () => Promise<string | undefined>): Promise<void> {
  const end = Date.now() + 60_000
  for (;;) {
    const seen = await check()
    if (seen === undefined) return
    if (Date.now() > end) assert.fail(`waited for ${what}; saw ${seen}`)
    await sleep(50)
  }
}

/** `testbed/main.ts`, its state in a folder of the test's. */
async function byHand(...args: string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'pth-'))
  const main = join(import.meta.dirname, '../main.ts')
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', main, 'kubernetes', ...args],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, TMPDIR: folder },
    },
  )
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const said: string[] = []
  return {
    folder,
    child,
    ended,
    /** The next line that matches. */
    async line(pattern: RegExp): Promise<string> {
      for (;;) {
        const next = await lines.next()
        if (next.done) assert.fail(`it ended before it said ${pattern}; it said:\n${said.join('\n')}`)
        said.push(next.value)
        if (pattern.test(next.value)) return next.value
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function routes(): Promise<string[]> {
  return (await run('ip', ['-4', 'route', 'show', 'table', 'all'])).split('\n')
}

/** Processes whose command line names a run's folder. */
async function processesOf(state: string): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (line.includes(state) && Number(pid) !== process.pid) found.push(`${pid} ${line.slice(0, 100)}`)
  }
  return found
}

/** Everything of a test bed that the machine shows outside of its folder. */
async function tracesOf({ state, network }: { state: string; network: KubernetesAccess['network'] }) {
  const addresses = [network.hostAddress, network.podCidr, network.serviceCidr]
  const processes = await processesOf(state)
  const ours = {
    routes: (await routes()).filter((route) => addresses.some((address) => route.includes(address))),
    namespaces: (await namesIn('/run/netns')).filter((name) => name === network.namespace),
    claims: (await namesIn(claims)).filter((name) => `postern-${name}` === network.namespace),
  }
  const claim = join(claims, String(ours.claims[0]), 'run.json')
  const holder = await readFile(claim, 'utf8').catch(() => state)
  // Its number may have gone to another test bed meanwhile.
  return holder.includes(state)
    ? { processes, ...ours }
    : { processes, routes: [], namespaces: [], claims: [] }
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => [])
}

const nothing = { processes: [], routes: [], namespaces: [], claims: [] }

describeWithKubernetes('a Kubernetes control plane', () => {
  test('of this version, with namespaces, ServiceAccounts and garbage collection', async () => {
    const access = await sharedKubernetes()
    const version = JSON.parse(await kubectl(['version', '-o', 'json'], access))
    assert.equal(version.serverVersion.gitVersion, 'v1.37.2')
    const [one, other] = [await namespace(), await namespace('test', { colour: 'blue' })]
    assert.notEqual(one, other)
    assert.equal(
      await kubectl(['get', 'ns', '-l', 'colour=blue', '-o', 'name'], access),
      `namespace/${other}\n`,
    )

    await kubectl(['create', 'configmap', 'owner', '-n', one], access)
    const uid = await kubectl(['get', 'cm', 'owner', '-n', one, '-o', 'jsonpath={.metadata.uid}'], access)
    const owned = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'owned',
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }],
      },
    }
    await kubectl(['create', '-n', one, '-f', '-'], { ...access, input: JSON.stringify(owned) })
    await kubectl(['delete', 'configmap', 'owner', '-n', one], access)
    await kubectl(['wait', '--for=delete', 'configmap/owned', '-n', one, '--timeout=60s'], access)
  })

  test('RBAC holds for users of its certificates, and a ServiceAccount can be played', async () => {
    const access = await sharedKubernetes()
    const place = await namespace()
    const user = await actAsServiceAccount(access, place, 'default')
    const list = ['get', 'configmaps', '-n', place, '-o', 'name']
    await assert.rejects(kubectl(list, user), {
      code: 'ProgramFailed',
      message: new RegExp(`Forbidden.*User "system:serviceaccount:${place}:default" cannot list`),
    })
    const allowed = ['--clusterrole=view', `--group=system:serviceaccounts:${place}`, '-n', place]
    await kubectl(['create', 'rolebinding', 'view', ...allowed], access)
    await until('the role to be in force', () =>
      kubectl(list, user).then(
        (out) => (out === 'configmap/kube-root-ca.crt\n' ? undefined : out),
        (error: Error) => error.message,
      ),
    )
  })

  test('etcd compacted: a watch from before gets 410; the API server killed and started: data stay', async () => {
    await using bed = await own({ controllers: false, apiserver: ['--watch-cache-sizes=configmaps#0'] })
    const create = (name: string) => kubectl(['create', 'configmap', name, '-n', 'default'], bed.access)
    await create('first')
    const versionOf = ['get', 'cm', 'first', '-n', 'default', '-o', 'jsonpath={.metadata.resourceVersion}']
    const old = await kubectl(versionOf, bed.access)
    await create('second')
    const watch = `/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=2&resourceVersion=${old}`
    assert.match((await get(bed.access, watch)).body, /"type":"ADDED".*"name":"second"/s)
    // What happened at the revision itself stays.
    await create('third')
    const revision = await bed.etcd.compact()
    assert.ok(revision > Number(old), `compacted at ${revision}, watched from ${old}`)
    const { body } = await get(bed.access, watch)
    assert.match(body, /"type":"ERROR".*"reason":"Expired","code":410/s)

    const { pid } = bed.apiserver
    await bed.apiserver.kill()
    assert.equal(bed.apiserver.running, false)
    await assert.rejects(get(bed.access, '/readyz'), { code: 'ECONNREFUSED' })
    await bed.apiserver.start()
    assert.notEqual(bed.apiserver.pid, pid)
    const names = await kubectl(['get', 'configmaps', '-n', 'default', '-o', 'name'], bed.access)
    assert.equal(names, 'configmap/first\nconfigmap/second\nconfigmap/third\n')
  })

  test('an API server that does not start is told with its log, and nothing is left', async () => {
    const state = await mkdtemp(join(tmpdir(), 'ptk-'))
    try {
      const options = { state, controllers: false, apiserver: ['--no-such-flag'] }
      await assert.rejects(startControlPlane(options), {
        code: 'TestbedProcess',
        message:
          /kube-apiserver ended \(code 1\) before it was ready; its log .*unknown flag: --no-such-flag/s,
      })
      assert.deepEqual(await processesOf(state), [])
      for (const claim of await namesIn(claims)) {
        const noted = await readFile(join(claims, claim, 'run.json'), 'utf8').catch(() => '')
        assert.ok(!noted.includes(state), `the network of number ${claim} is left`)
      }
    } finally {
      await rm(state, { recursive: true, force: true })
    }
  })

  test('two at once have addresses of their own; nothing is left after their end', withRoot, async () => {
    const shared = await sharedKubernetes()
    await using bed = await own({ controllers: false })
    assert.notEqual(bed.network.namespace, shared.network.namespace)
    assert.notEqual(bed.url, shared.url)
    const seen = await tracesOf(bed)
    for (const [what, traces] of Object.entries(seen)) assert.notEqual(traces.length, 0, what)
    await bed.stop()
    assert.deepEqual(await tracesOf(bed), nothing)
    assert.equal((await get(shared, '/readyz')).body, 'ok')
  })

  test('it runs without a network namespace, beside another', async () => {
    await using bed = await own({ network: 'loopback' })
    assert.match(bed.url, /^https:\/\/127\.0\.0\.1:\d+$/)
    await kubectl(['wait', '--for=create', 'serviceaccount/default', '--timeout=60s'], bed.access)
    assert.equal((await processesOf(bed.state)).length, 4)
    await bed.stop()
    assert.deepEqual(await processesOf(bed.state), [])
  })

  test('by hand; killed with -9 its processes end, the next start removes the rest', withRoot, async () => {
    await using main = await byHand('--json')
    const access = JSON.parse(await main.line(/^{/)) as KubernetesAccess
    assert.equal((await get(access, '/readyz')).body, 'ok')
    main.child.kill('SIGKILL')
    // Its threads end one by one; the last releases the lock.
    await main.ended
    await until('its processes to end', async () => {
      const left = await processesOf(main.folder)
      return left.length === 0 ? undefined : left.join('\n')
    })
    await stat(access.state)
    const next = await openNetwork(await mkdtemp(join(main.folder, 'next-')))
    try {
      await assert.rejects(stat(access.state), { code: 'ENOENT' })
      const itsOwn = next?.network.namespace === access.network.namespace
      if (!itsOwn) assert.deepEqual(await tracesOf(access), nothing)
    } finally {
      await next?.close()
    }
    assert.deepEqual(await tracesOf(access), nothing)
  })

  test('by hand; ended while it starts it leaves nothing', async () => {
    await using main = await byHand()
    await main.line(/^starting kube-apiserver/)
    main.child.kill('SIGTERM')
    assert.equal(await main.ended, 0)
    assert.deepEqual(await processesOf(main.folder), [])
    assert.deepEqual(await readdir(main.folder), [])
  })
})
