import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { kubectl } from '../kubectl.ts'
import { nodeMissing } from '../left-out.ts'
import { namespace, sharedNode } from '../shared.ts'
import { packImage, webImage } from './images.ts'
import { importImage, podProcesses } from './node.ts'
import { waitUntil } from './wait.ts'

const skip = await nodeMissing()
// Its end is the file's; the namespace's is the suite's, which comes before.
const shared = skip === undefined ? sharedNode() : undefined

describe('a node', skip === undefined ? {} : { skip }, async () => {
  const cluster = await shared!
  const place = await namespace('node', { 'pod-security.kubernetes.io/enforce': 'restricted' })
  const inPlace = (args: string[], input?: string) =>
    kubectl(['--namespace', place, ...args], { ...cluster, ...(input === undefined ? {} : { input }) })
  const apply = async (...items: object[]) => {
    await inPlace(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  }
  const ready = async (...names: string[]) => {
    const pods = names.map((name) => `pod/${name}`)
    await inPlace(['wait', '--for=condition=Ready', '--timeout=60s', ...pods]).catch(async (error) => {
      throw new Error(`${error.message}\n${await inPlace(['describe', ...pods])}`)
    })
  }
  const inPod = (name: string, ...command: string[]) => inPlace(['exec', name, '--', ...command])
  const fetched = (url: string) => inPod('client', 'curl', '--silent', '--show-error', '--max-time', '5', url)

  before(async () => {
    await apply(pod('web', { command: ['sh', '-c', 'echo serving; exec httpd -f -v -p 8080 -h /www'] }), {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080 }] },
    })
    await apply(pod('client', { command: ['sleep', '100000'] }))
    await ready('web', 'client')
  })

  test('runs restricted pods, whose logs and commands are reached', async () => {
    assert.match(await inPlace(['logs', 'web']), /^serving\n/)
    assert.match(await inPod('web', 'id'), /uid=65532\(nonroot\) gid=65532/)
    await assert.rejects(inPod('web', 'sh', '-c', 'echo x >/x'), /Read-only file system/)
  })

  test('resolves and reaches Services in pods', async () => {
    const address = await inPlace(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}'])
    const { nodeAddress, apiAddress, dnsAddress } = cluster.network
    for (const name of [`web`, `web.${place}`, `web.${place}.svc.cluster.local`, address]) {
      const page = await waitUntil(`a page from ${name}`, 30_000, () => fetched(`http://${name}/`))
      assert.equal(page, 'hello from a pod\n')
    }
    assert.match(
      await inPod('client', 'nslookup', '-type=a', `web.${place}.svc.cluster.local`),
      new RegExp(address),
    )
    assert.match(await inPod('client', 'cat', '/etc/resolv.conf'), new RegExp(`nameserver ${dnsAddress}\n`))
    // Refused as unknown is an answer by the API server, on its Service's and on the node's own address.
    for (const host of [apiAddress, `${nodeAddress}:6443`]) {
      assert.match(await inPod('client', 'curl', '-sk', `https://${host}/api`), /"code": 40[13]/)
    }
  })

  test('is reached from this process: pods and Services by their addresses', async () => {
    const podIp = await inPlace(['get', 'pod', 'web', '-o', 'jsonpath={.status.podIP}'])
    const service = await inPlace(['get', 'service', 'web', '-o', 'jsonpath={.spec.clusterIP}'])
    for (const url of [`http://${podIp}:8080/`, `http://${service}/`]) {
      const page = await waitUntil(`a page from ${url}`, 30_000, async () => {
        const answer = await fetch(url, { signal: AbortSignal.timeout(5000) })
        return await answer.text()
      })
      assert.equal(page, 'hello from a pod\n')
    }
  })

  test('lets pods reach what this process serves on the machine’s address', async (t) => {
    const server = createServer((request, response) => response.end(`seen ${request.socket.remoteAddress}\n`))
    t.after(() => server.close())
    server.listen(0, cluster.network.hostAddress)
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const podIp = await inPlace(['get', 'pod', 'client', '-o', 'jsonpath={.status.podIP}'])
    assert.equal(await fetched(`http://${cluster.network.hostAddress}:${port}/`), `seen ${podIp}\n`)
  })

  test('shows a changed ConfigMap in a running pod as soon as an annotation of the pod changes', async (t) => {
    const settings = (value: string) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 's' },
      data: { value },
    })
    const volumes = [{ name: 's', configMap: { name: 's' } }]
    const mounted = { command: ['sleep', '100000'], volumeMounts: [{ name: 's', mountPath: '/s' }] }
    await apply(settings('old'), pod('reader', mounted, { volumes }))
    await ready('reader')
    assert.equal(await inPod('reader', 'cat', '/s/value'), 'old')
    const began = Date.now()
    await apply(settings('new'))
    await inPlace(['annotate', 'pod', 'reader', 'changed=1'])
    const patched = Date.now()
    await waitUntil(
      'the new value in the pod',
      60_000,
      async () => (await inPod('reader', 'cat', '/s/value')) === 'new',
    )
    t.diagnostic(`ConfigMap → pod: ${Date.now() - began} ms, ${Date.now() - patched} ms after the annotation`)
  })

  test('tells the processes of a pod, which is started again when they are killed', async () => {
    await apply(pod('victim', {}))
    await ready('victim')
    const field = (path: string) => inPlace(['get', 'pod', 'victim', '-o', `jsonpath={${path}}`])
    const restarts = () => field('.status.containerStatuses[0].restartCount')
    assert.equal(await restarts(), '0')
    const commands = await Promise.all(
      (await podProcesses(cluster.node, await field('.metadata.uid'))).map(async (pid) => {
        return { pid, command: await readFile(`/proc/${pid}/cmdline`, 'utf8') }
      }),
    )
    const server = commands.find(({ command }) => command.startsWith('/bin/sh\0'))
    assert.ok(server !== undefined, JSON.stringify(commands))
    process.kill(server.pid, 'SIGKILL')
    const seen = () => field('.status')
    await waitUntil('the restart', 60_000, async () => (await restarts()) === '1', seen)
    await ready('victim')
  })

  test('runs an image that was imported while it ran', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'image-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const name = `testbed.local/${place}:1`
    const files = { ...webImage.files, '/www/index.html': { content: 'imported\n' } }
    await importImage(cluster.node, await packImage({ ...webImage, name, files }, folder))
    await apply(pod('imported', { image: name }))
    await ready('imported')
    assert.equal(await inPod('imported', 'cat', '/www/index.html'), 'imported\n')
  })
})

/** As restricted as Pod Security asks, and with a read-only root. */
function pod(name: string, container: object, spec: object = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'main',
          image: webImage.name,
          imagePullPolicy: 'Never',
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          ...container,
        },
      ],
      ...spec,
    },
  }
}
