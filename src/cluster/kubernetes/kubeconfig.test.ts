import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { stringify } from 'yaml'
import { type Choice, loadSettings } from './connect.ts'
import { type Pair, TestAuthority } from './tls-fixture.ts'

let folder: string
let pair: Pair

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-kubeconfig-'))
  pair = new TestAuthority(folder, 'authority').pair
})

after(() => rmSync(folder, { recursive: true }))

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** A kubeconfig of one context. */
function config(user: unknown = {}, cluster: object = {}, more: object = {}): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'main',
    contexts: [{ name: 'main', context: { cluster: 'home', user: 'me', namespace: 'ns' } }],
    clusters: [{ name: 'home', cluster: { server: 'https://10.0.0.1:6443', ...cluster } }],
    users: [{ name: 'me', user }],
    ...more,
  }
}

function put(document: unknown, name = 'config'): string {
  const file = join(folder, name)
  writeFileSync(file, typeof document === 'string' ? document : stringify(document))
  return file
}

function load(document: unknown, choice: Choice = {}) {
  return loadSettings({ kubeconfig: put(document), env: {}, home: folder, ...choice })
}

test('certificate and key from data; authority from a file beside the kubeconfig', () => {
  const data = { 'client-certificate-data': base64(pair.cert), 'client-key-data': base64(pair.key) }
  const settings = load(
    config(data, { 'certificate-authority': 'authority.crt', 'tls-server-name': 'api.test' }),
  )
  const file = join(folder, 'config')
  assert.deepEqual(settings, {
    source: `${file}, context main`,
    server: 'https://10.0.0.1:6443',
    namespace: 'ns',
    tls: {
      insecure: false,
      serverName: 'api.test',
      ca: { where: `${file}: clusters[home].cluster.certificate-authority`, file: pair.certFile },
    },
    user: {
      certificate: { where: `${file}: users[me].user.client-certificate-data`, text: pair.cert },
      key: { where: `${file}: users[me].user.client-key-data`, text: pair.key },
    },
  })
})

test('tokens: a file before a text, and over plain HTTP none at all', () => {
  writeFileSync(join(folder, 'token'), 'from-file\n')
  assert.deepEqual(load(config({ token: 'abc' })).user, { token: 'abc' })
  assert.deepEqual(load(config({ token: 'abc', tokenFile: 'token' })).user, {
    tokenFile: join(folder, 'token'),
  })
  assert.deepEqual(load(config({ token: '' })).user, {})
  assert.deepEqual(load(config(null)).user, {})
  assert.deepEqual(load(config({ token: 'abc' }, { server: 'http://127.0.0.1:8001/' })).user, {})
})

test('exec: version, command beside the kubeconfig, and what the plug-in is told', () => {
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: './bin/plugin',
    args: ['get-token'],
    env: [{ name: 'A', value: 'b' }],
    interactiveMode: 'Never',
    installHint: 'see example.test',
    provideClusterInfo: true,
  }
  const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }]
  const cluster = {
    'certificate-authority-data': base64(pair.cert),
    'tls-server-name': 'api.test',
    extensions,
  }
  assert.deepEqual(load(config({ exec }, cluster)).user.exec, {
    where: `${join(folder, 'config')}: users[me].user.exec`,
    apiVersion: exec.apiVersion,
    command: join(folder, 'bin/plugin'),
    args: ['get-token'],
    env: [{ name: 'A', value: 'b' }],
    interactiveMode: 'Never',
    installHint: 'see example.test',
    cluster: {
      server: 'https://10.0.0.1:6443',
      'tls-server-name': 'api.test',
      'certificate-authority-data': base64(pair.cert),
      config: { audience: 'x' },
    },
  })
  const old = { apiVersion: 'client.authentication.k8s.io/v1beta1', command: 'plugin' }
  assert.equal(load(config({ exec: old })).user.exec?.interactiveMode, 'IfAvailable')
  assert.equal(load(config({ exec: old })).user.exec?.command, 'plugin')
  assert.deepEqual(load(config({ exec: old, token: 'abc' })).user, { token: 'abc' })
})

test('KUBECONFIG: the first file that says something wins, and files that are missing are passed over', () => {
  const first = put(
    {
      'current-context': 'b',
      users: [{ name: 'me', user: { token: 'first' } }],
      contexts: [{ name: 'b', context: { cluster: 'home', user: 'me' } }],
    },
    'first',
  )
  mkdirSync(join(folder, 'sub'), { recursive: true })
  writeFileSync(join(folder, 'sub', 'ca.crt'), pair.cert)
  const second = put(
    config({ token: 'second', tokenFile: 'x' }, { 'certificate-authority': 'ca.crt' }),
    'sub/second',
  )
  const env = { KUBECONFIG: `${join(folder, 'missing')}::${first}:${second}` }
  const settings = loadSettings({ env, home: folder })
  assert.equal(settings.source, `${first}, context b`)
  assert.equal(settings.namespace, 'default')
  assert.deepEqual(settings.user, { token: 'first' })
  // Relative to the file that the entry came from.
  assert.equal(
    settings.tls.ca && 'file' in settings.tls.ca && settings.tls.ca.file,
    join(folder, 'sub', 'ca.crt'),
  )
  assert.equal(loadSettings({ env, home: folder, context: 'main' }).source, `${second}, context main`)
})

test('where settings are looked for', () => {
  const home = join(folder, 'home')
  mkdirSync(join(home, '.kube'), { recursive: true })
  const env: NodeJS.ProcessEnv = {}
  assert.throws(() => loadSettings({ env, home }), {
    code: 'KubeconfigNotFound',
    message: `no kubeconfig at ${home}/.kube/config: write one there, or name it with --kubeconfig or KUBECONFIG`,
  })
  writeFileSync(join(home, '.kube', 'config'), stringify(config({ token: 'home' })))
  assert.deepEqual(loadSettings({ env, home }).user, { token: 'home' })
  const serviceAccount = join(folder, 'serviceaccount')
  mkdirSync(serviceAccount)
  env.KUBERNETES_SERVICE_HOST = 'fd00::1'
  env.KUBERNETES_SERVICE_PORT = '443'
  assert.throws(() => loadSettings({ env, home, serviceAccount }), {
    code: 'InClusterInvalid',
    message: /ca\.crt does not exist.*automountServiceAccountToken: true/,
  })
  writeFileSync(join(serviceAccount, 'ca.crt'), pair.cert)
  writeFileSync(join(serviceAccount, 'token'), 'pod-token')
  writeFileSync(join(serviceAccount, 'namespace'), 'postern-system')
  const settings = loadSettings({ env, home, serviceAccount })
  assert.equal(settings.server, 'https://[fd00::1]:443')
  assert.equal(settings.namespace, 'postern-system')
  assert.deepEqual(settings.user, { tokenFile: join(serviceAccount, 'token') })
  assert.throws(
    () => loadSettings({ env: { ...env, KUBERNETES_SERVICE_PORT: '0x1' }, home, serviceAccount }),
    {
      code: 'InClusterInvalid',
    },
  )
  env.KUBECONFIG = put(config({ token: 'env' }), 'env')
  assert.deepEqual(loadSettings({ env, home, serviceAccount }).user, { token: 'env' })
  assert.deepEqual(load(config({ token: 'path' }), { env, home }).user, { token: 'path' })
  assert.throws(() => loadSettings({ kubeconfig: join(folder, 'missing'), env, home }), {
    code: 'KubeconfigNotFound',
  })
})

test('what is wrong is named by file, field and remedy, and no secret is repeated', () => {
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'x', interactiveMode: 'Never' }
  const table: [unknown, RegExp][] = [
    ['- a', /config: is no kubeconfig/],
    ['users:\n  token: hunter2: x\n', /config:2:\d+: is not valid YAML \([A-Z_]+\)/],
    ['a: &a [*b]', /config:?.*YAML/],
    ['', /current-context is not set: run 'kubectl config use-context NAME'.*none is declared/],
    [config({}, {}, { 'current-context': 'no' }), /contexts: there is no 'no': choose one of main/],
    [config({}, {}, { 'current-context': 7 }), /config: current-context: must be a string/],
    [config({}, {}, { clusters: [] }), /contexts\[main\]\.context\.cluster: there is no 'home'/],
    [config({}, {}, { users: 'x' }), /config: users: must be a list/],
    [config({}, {}, { users: ['hunter2'] }), /users\[0\]: must be a mapping with name/],
    [config({}, {}, { users: [{ name: 'me' }, { name: 'me' }] }), /users\[me\]: is there twice/],
    [
      config({}, {}, { contexts: [{ name: 'main', context: {} }] }),
      /contexts\[main\]\.context\.cluster: is not set/,
    ],
    [config('hunter2'), /users\[me\]\.user: must be a mapping/],
    [config({}, { server: '' }), /clusters\[home\]\.cluster\.server: is not set/],
    [config({}, { server: '10.0.0.1:6443' }), /cluster\.server: must be a URL/],
    [config({}, { server: 'https://me:hunter2@host' }), /cluster\.server: must be a URL/],
    [config({}, { 'proxy-url': 'http://proxy:hunter2@x' }), /cluster\.proxy-url: is not supported/],
    [config({}, { 'insecure-skip-tls-verify': 'yes' }), /insecure-skip-tls-verify: must be true or false/],
    [
      config({}, { 'insecure-skip-tls-verify': true, 'certificate-authority': 'authority.crt' }),
      /must not stand beside/,
    ],
    [
      config({}, { 'certificate-authority': 'gone.crt' }),
      /certificate-authority: \/.*gone\.crt does not exist/,
    ],
    [
      config({}, { 'certificate-authority': 'authority.key' }),
      /authority\.key holds no PEM block 'CERTIFICATE'/,
    ],
    [
      config({}, { 'certificate-authority-data': '!!hunter2!!' }),
      /certificate-authority-data holds no PEM block/,
    ],
    [config({ username: 'me', password: 'hunter2' }), /user\.username: is not supported/],
    [config({ password: 'hunter2' }), /user\.password: is not supported/],
    [config({ 'auth-provider': { name: 'gcp' } }), /user\.auth-provider: is not supported.*exec plug-in/],
    [config({ as: 'admin' }), /user\.as: is not supported/],
    [config({ 'client-certificate': 'authority.crt' }), /user\.client-key: is not set/],
    [config({ 'client-key': 'authority.key' }), /user\.client-certificate: is not set/],
    [config({ 'client-certificate': 'gone.crt' }), /user\.client-certificate: \/.*gone\.crt does not exist/],
    [config({ token: 'hunter2 and more' }), /user\.token: the token holds spaces or control characters/],
    [config({ token: 42 }), /user\.token: must be a string/],
    [config({ tokenFile: 'gone' }), /user\.tokenFile: \/.*gone does not exist/],
    [config({ exec: 'x' }), /user\.exec: must be a mapping/],
    [
      config({ exec: { ...exec, apiVersion: 'client.authentication.k8s.io/v1alpha1' } }),
      /exec\.apiVersion: must be/,
    ],
    [config({ exec: { ...exec, command: '' } }), /exec\.command: is not set/],
    [config({ exec: { ...exec, interactiveMode: undefined } }), /exec\.interactiveMode: must be/],
    [config({ exec: { ...exec, args: [1] } }), /exec\.args: must be a list of strings/],
    [config({ exec: { ...exec, env: [{ name: 'A' }] } }), /exec\.env\[0\]: must have a name and a value/],
  ]
  for (const [document, message] of table) {
    assert.throws(
      () => load(document),
      (error: Error & { code: string }) => {
        assert.equal(error.code, 'KubeconfigInvalid', `${error}`)
        assert.match(error.message, message)
        assert.ok(error.message.startsWith(folder), error.message)
        assert.ok(!error.message.includes('hunter2'), error.message)
        return true
      },
    )
  }
})

test('a kubeconfig that cannot be read', {
  skip: process.getuid?.() === 0 && 'root reads everything',
}, () => {
  const file = put(config(), 'closed')
  chmodSync(file, 0)
  assert.throws(() => loadSettings({ kubeconfig: file, env: {}, home: folder }), {
    code: 'KubeconfigInvalid',
  })
})

test('a kubeconfig that is a folder, or far too large', () => {
  assert.throws(() => loadSettings({ kubeconfig: folder, env: {}, home: folder }), {
    code: 'KubeconfigInvalid',
    message: /cannot be read \(EISDIR\)/,
  })
  assert.throws(() => load(`a: ${'x'.repeat(1024 * 1024)}`), {
    code: 'KubeconfigInvalid',
    message: /larger than 1 MiB/,
  })
})
