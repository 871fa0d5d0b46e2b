import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, it } from 'node:test'
import { promisify } from 'node:util'
import { SECRET, type Secret } from '../../src/cluster/kinds.ts'
import { connect, loadSettings } from '../../src/cluster/kubernetes/connect.ts'
import { ONION_SERVICE, type OnionService } from '../../src/tor/api/onion-service.ts'
import { generateOnionKey } from '../../src/tor/onion/key.ts'
import { keySecret } from '../../src/tor/operator/onion-keys.ts'
import { kubectl } from '../../testbed/kubernetes/kubectl.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { namespace, sharedKubernetes } from '../../testbed/kubernetes/shared.ts'

/** `postern keys` with a real API server: what is written there, and that no more is needed than users have. */

const ROOT = join(import.meta.dirname, '..', '..')
const MAIN = resolve(ROOT, 'src/cli/main.ts')
const MANAGER = { fieldManager: 'test' }

describeWithKubernetes('postern keys, on a cluster', async () => {
  const cluster = await sharedKubernetes()
  const space = await namespace('keys')
  const folder = mkdtempSync(join(tmpdir(), 'pak-'))
  const passphrase = join(folder, 'pass')
  const backup = join(folder, 'backup.age')
  const api = connect(loadSettings({ kubeconfig: cluster.kubeconfig }), { component: 'test', version: '0' })
  const key = generateOnionKey()

  const keys = (...words: string[]): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)(process.execPath, [
      MAIN,
      'keys',
      ...words,
      '--kubeconfig',
      cluster.kubeconfig,
      '-n',
      space,
    ])
  const onion = (): Promise<OnionService> => api.get(ONION_SERVICE, { namespace: space, name: 'web' })
  const secret = (): Promise<Secret> => api.get(SECRET, { namespace: space, name: 'web-onion-key' })

  before(async () => {
    writeFileSync(passphrase, 'correct horse battery staple\n')
    const crds = join(ROOT, 'deploy/base/crds')
    await kubectl(['apply', '--server-side', '--force-conflicts', '-f', crds], cluster)
    await kubectl(
      ['wait', '--for=condition=Established', 'crd/onionservices.tor.fr0st.dev', '--timeout=60s'],
      cluster,
    )
    const { apiVersion, kind } = ONION_SERVICE
    const ports = [{ virtualPort: 80, backend: { service: 'web', port: 80 } }]
    const object = { apiVersion, kind, metadata: { namespace: space, name: 'web' }, spec: { ports } }
    await api.create(ONION_SERVICE, object, MANAGER)
    await api.create(SECRET, keySecret(object, key) as Secret, MANAGER)
  })
  after(async () => {
    await api.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('exports what is there, and finds it whole', async () => {
    const { stderr } = await keys('export', '--passphrase-file', passphrase, '--output', backup)
    assert.match(stderr, new RegExp(`${key.address}\\.onion`))
    assert.match((await keys('check')).stdout, /web-onion-key.*ok/)
    const checked = await keys('check', '--file', backup, '--passphrase-file', passphrase, '-o', 'json')
    assert.equal(JSON.parse(checked.stdout)[0].hostname, `${key.address}.onion`)
  })

  it('restores a Secret that is gone, as the operator had made it', async () => {
    const before = await secret()
    await api.remove(SECRET, { namespace: space, name: 'web-onion-key' })
    await keys('import', backup, '--passphrase-file', passphrase)
    const { data, metadata, type } = await secret()
    assert.deepEqual([data, metadata.labels, type], [before.data, before.metadata.labels, before.type])
  })

  it('rotates, and leaves all that others own', async () => {
    const before = await onion()
    await keys('rotate', 'web', '--overlap', '2d')
    const { spec, metadata } = await onion()
    assert.deepEqual(spec.ports, before.spec.ports)
    assert.equal(spec.formerKeys?.[0]?.name, 'web-onion-key')
    assert.notEqual(spec.privateKeySecret?.name, undefined)
    assert.equal(metadata.uid, before.metadata.uid)
    await keys('rotate', 'web', '--overlap', '1d')
    const again = await onion()
    assert.deepEqual(
      again.spec.formerKeys?.map(({ name }) => name),
      ['web-onion-key', spec.privateKeySecret?.name],
    )
    assert.match((await keys('check')).stdout, /until .*ok/)
  })

  it('says what a user may not do', async () => {
    const words = ['create', 'serviceaccount', 'nobody', '-n', space]
    await kubectl(words, cluster)
    const token = (await kubectl(['create', 'token', 'nobody', '-n', space], cluster)).trim()
    const config = join(folder, 'nobody')
    const user = { name: 'nobody', user: { token } }
    const content = {
      clusters: [{ name: 'c', cluster: { server: cluster.url, 'certificate-authority': cluster.ca } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'nobody' } }],
      users: [user],
      'current-context': 'c',
    }
    writeFileSync(config, JSON.stringify(content), { mode: 0o600 })
    const denied = promisify(execFile)(process.execPath, [
      MAIN,
      'keys',
      'check',
      '--kubeconfig',
      config,
      '-n',
      space,
    ])
    await assert.rejects(denied, (error: Error & { stderr?: string }) => {
      assert.match(error.stderr ?? '', /onionservices.*forbidden|cannot list/i)
      assert.ok(!(error.stderr ?? '').includes(token))
      return true
    })
  })
})
