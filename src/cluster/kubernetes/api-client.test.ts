import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import type { Kind, Resource } from '../../core/resource.ts'
import { DEPLOYMENT, NAMESPACE, SECRET } from '../kinds.ts'
import type { ApiClient } from './api-client.ts'
import { connect } from './connect.ts'
import { json, PlayedServer, refusal } from './server-fixture.ts'

const BUNDLE: Kind = {
  apiVersion: 'certificates.k8s.io/v1',
  kind: 'ClusterTrustBundle',
  plural: 'clustertrustbundles',
  namespaced: false,
}

let server: PlayedServer
let client: ApiClient

beforeEach(async () => {
  server = await PlayedServer.start((response, asked) =>
    json(response, asked.body ? JSON.parse(asked.body) : object('a')),
  )
  client = connect(server.settings(), { component: 'test', version: '1.2.3' })
})

afterEach(async () => {
  await client.close()
  await server.close()
})

function object(name: string, more: object = {}): Resource {
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: 'ns', name }, ...more }
}

function last() {
  return server.asked.at(-1)!
}

test('each kind has its path, and names are encoded', async () => {
  await client.get(SECRET, { namespace: 'ns', name: 'a' })
  await client.get(DEPLOYMENT, { namespace: 'ns', name: 'a' })
  await client.get(NAMESPACE, { name: 'a' })
  await client.get(BUNDLE, { name: 'postern.test:workload:ü' })
  assert.deepEqual(
    server.asked.map(({ method, path }) => `${method} ${path}`),
    [
      'GET /api/v1/namespaces/ns/secrets/a',
      'GET /apis/apps/v1/namespaces/ns/deployments/a',
      'GET /api/v1/namespaces/a',
      'GET /apis/certificates.k8s.io/v1/clustertrustbundles/postern.test%3Aworkload%3A%C3%BC',
    ],
  )
  assert.equal(last().headers['user-agent'], 'postern/1.2.3 (test)')
})

test('a name that would lead elsewhere is refused before it is sent', async () => {
  for (const name of ['', '.', '..', 'a/b', '../../x', 'a%2fb']) {
    await assert.rejects(client.get(SECRET, { namespace: 'ns', name }), { code: 'Invalid' })
    await assert.rejects(client.get(SECRET, { namespace: name, name: 'x' }), { code: 'Invalid' })
    await assert.rejects(client.remove(NAMESPACE, { name }), { code: 'Invalid' })
  }
  await assert.rejects(
    client.create(
      SECRET,
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } },
      { fieldManager: 'm' },
    ),
    {
      code: 'Invalid',
    },
  )
  assert.deepEqual(server.asked, [])
})

test('apply and create: content, manager, and fields that nobody here knows', async () => {
  const future = object('a', { spec: { replicas: 1, futureField: { deep: [null, 'ü'] } }, odd: true })
  server.reply = (response, asked) => json(response, JSON.parse(asked.body), 201)
  const applied = await client.apply(DEPLOYMENT, structuredClone(future), { fieldManager: 'postern/tor' })
  assert.deepEqual(applied, { object: future, created: true })
  assert.equal(last().method, 'PATCH')
  assert.equal(last().path, '/apis/apps/v1/namespaces/ns/deployments/a?fieldManager=postern%2Ftor&force=true')
  assert.equal(last().headers['content-type'], 'application/apply-patch+yaml')
  assert.deepEqual(JSON.parse(last().body), future)

  server.reply = (response, asked) => json(response, JSON.parse(asked.body))
  const again = await client.apply(DEPLOYMENT, future, { fieldManager: 'm', subresource: 'status' })
  assert.equal(again.created, false)
  assert.equal(last().path, '/apis/apps/v1/namespaces/ns/deployments/a/status?fieldManager=m&force=true')

  assert.deepEqual(await client.create(DEPLOYMENT, structuredClone(future), { fieldManager: 'm' }), future)
  assert.equal(
    `${last().method} ${last().path}`,
    'POST /apis/apps/v1/namespaces/ns/deployments?fieldManager=m',
  )
  assert.equal(last().headers['content-type'], 'application/json')
})

test('a list: selection, pages, and the kind that its items are without', async () => {
  server.reply = (response) =>
    json(response, {
      kind: 'DeploymentList',
      metadata: { resourceVersion: '7', continue: 'next/=' },
      items: [{ metadata: { name: 'a' }, futureField: 1 }],
    })
  const page = await client.list(DEPLOYMENT, {
    namespace: 'ns',
    labelSelector: 'a=b,c!=d',
    limit: 500,
    continue: 'x=',
  })
  assert.deepEqual(page, {
    resourceVersion: '7',
    continue: 'next/=',
    items: [{ metadata: { name: 'a' }, futureField: 1, apiVersion: 'apps/v1', kind: 'Deployment' }],
  })
  const url = new URL(last().path, 'http://x')
  assert.equal(url.pathname, '/apis/apps/v1/namespaces/ns/deployments')
  assert.deepEqual(Object.fromEntries(url.searchParams), {
    labelSelector: 'a=b,c!=d',
    limit: '500',
    continue: 'x=',
  })

  server.reply = (response) =>
    json(response, { metadata: { resourceVersion: '8', continue: '' }, items: null })
  assert.deepEqual(await client.list(DEPLOYMENT), { items: [], resourceVersion: '8' })
  assert.equal(last().path, '/apis/apps/v1/deployments')

  for (const odd of [{}, [], null, 'x', { metadata: { resourceVersion: '1' }, items: [1] }, object('a')]) {
    server.reply = (response) => json(response, odd)
    await assert.rejects(client.list(DEPLOYMENT), { code: 'Unavailable', reason: 'AnswerInvalid' })
  }
})

test('only metadata: asked for by the Accept header, and of the kind that was asked for', async () => {
  const partial = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'a' } }
  server.reply = (response) => json(response, partial)
  const found = await client.get(NAMESPACE, { name: 'a' }, { metadataOnly: true })
  assert.deepEqual([found.apiVersion, found.kind], ['v1', 'Namespace'])
  assert.equal(last().headers.accept, 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1')
  server.reply = (response) => json(response, { metadata: { resourceVersion: '1' }, items: [partial] })
  const page = await client.list(NAMESPACE, { metadataOnly: true })
  assert.deepEqual(page.items[0]?.kind, 'Namespace')
  assert.equal(last().headers.accept, 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1')
})

test('delete: in the background, with preconditions; what is not there is fine, a page of a proxy is not', async () => {
  server.reply = (response) => json(response, { kind: 'Status', status: 'Success' })
  await client.remove(SECRET, { namespace: 'ns', name: 'a' }, { uid: 'u' })
  assert.equal(`${last().method} ${last().path}`, 'DELETE /api/v1/namespaces/ns/secrets/a')
  assert.deepEqual(JSON.parse(last().body), {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    propagationPolicy: 'Background',
    preconditions: { uid: 'u' },
  })
  server.reply = (response) => json(response, refusal(404, 'NotFound', 'secrets "a" not found'), 404)
  await client.remove(SECRET, { namespace: 'ns', name: 'a' })
  server.reply = (response) => json(response, refusal(409, 'Conflict', 'the UID differs'), 409)
  await assert.rejects(client.remove(SECRET, { namespace: 'ns', name: 'a' }, { uid: 'u' }), {
    code: 'Conflict',
    message: 'DELETE Secret ns/a: the UID differs',
  })
  server.reply = (response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<html>')
  await assert.rejects(client.remove(SECRET, { namespace: 'ns', name: 'a' }), { code: 'Unavailable' })
})

test('version', async () => {
  server.reply = (response) => json(response, { major: '1', minor: '37', gitVersion: 'v1.37.2' })
  assert.equal(await client.version(), 'v1.37.2')
  server.reply = (response) => json(response, { gitVersion: '<script>' })
  await assert.rejects(client.version(), { reason: 'AnswerInvalid' })
})

test('a closed client says so', async () => {
  await client.close()
  await assert.rejects(client.version(), {
    code: 'Unavailable',
    message: 'GET /version: the client is closed',
  })
})
