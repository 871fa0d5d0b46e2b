import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { parse } from 'yaml'
import { objectTable } from '../../src/cli/table.ts'
import type { ApiKind } from '../../src/cluster/api-kind.ts'
import type { Resource } from '../../src/core/resource.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { kubectl } from '../../testbed/kubernetes/kubectl.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { namespace, sharedKubernetes } from '../../testbed/kubernetes/shared.ts'
import { EXAMPLES, type Example } from './kind-examples.ts'

/** The kinds as a real API server has them: what it takes, what it refuses and with which words, what it shows. */

const ROOT = join(import.meta.dirname, '..', '..')
const CONDITION = {
  type: 'Ready',
  status: 'True',
  reason: 'Ready',
  message: 'all is well',
  lastTransitionTime: '2026-01-01T00:00:00Z',
}

interface Status {
  message: string
  details?: { causes?: { field?: string; message: string }[] }
}
interface Answer {
  code: number
  body: Resource & Status
  warning: string
}

describeWithKubernetes('the kinds on a real API server', async () => {
  const cluster = await sharedKubernetes()
  const agent = new Agent({
    keepAlive: true,
    ca: readFileSync(cluster.ca),
    cert: readFileSync(cluster.adminCertificate),
    key: readFileSync(cluster.adminKey),
  })
  const space = await namespace('crds')

  before(async () => {
    await kubectl(
      ['apply', '--server-side', '--force-conflicts', '-f', join(ROOT, 'deploy/base/crds')],
      cluster,
    )
    const names = TOR_KINDS.map((kind) => `crd/${kind.plural}.tor.fr0st.dev`)
    await kubectl(['wait', '--for=condition=Established', ...names, '--timeout=60s'], cluster)
  })
  after(() => agent.destroy())

  function call(method: string, path: string, body?: object, type = 'application/json'): Promise<Answer> {
    const url = `${cluster.url}/apis/tor.fr0st.dev/v1alpha1/namespaces/${space}/${path}`
    return new Promise((resolve, reject) => {
      const sent = request(url, { method, agent, headers: { 'content-type': type } }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => {
          const warning = [response.headers.warning ?? ''].flat().join(' ')
          resolve({ code: response.statusCode ?? 0, body: JSON.parse(text) as Answer['body'], warning })
        })
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  const apply = (path: string, manager: string, body: object): Promise<Answer> =>
    call('PATCH', `${path}?fieldManager=${manager}&force=true`, body, 'application/apply-patch+yaml')

  for (const example of EXAMPLES) {
    const verdict = example.wrong === undefined ? 'takes' : 'refuses'
    it(`${verdict} ${example.kind}: ${example.what}`, async () => {
      const kind = kindOf(example.kind)
      const object = documentOf(example)
      const problems = kind.validate(object)
      const answer = await call('POST', `${kind.plural}?dryRun=All&fieldValidation=Strict`, object)
      if (example.wrong === undefined) {
        assert.deepEqual(problems, [])
        assert.equal(answer.code, 201, answer.body.message)
        return
      }
      const { field, says, server } = example.wrong
      assert.equal(answer.code, 422, JSON.stringify(answer.body))
      const causes = (answer.body.details?.causes ?? []).filter((cause) => cause.field === field)
      const words = causes.map(({ message }) => message)
      assert.ok(
        words.some((text) => (says === undefined ? server!.test(text) : text.endsWith(says))),
        `${field}: ${words.join(' | ') || answer.body.message}`,
      )
      // On one machine it is refused as well, where possible with the same words.
      const own = problems.map(({ message }) => message)
      assert.notDeepEqual(own, [])
      if (says !== undefined) assert.ok(own.includes(says), own.join(' | '))
    })
  }

  it("takes existing users' manifests as they are", async () => {
    for (const name of ['onion-service', 'onion-proxy', 'tor-daemon-with-bridges']) {
      const file = join(ROOT, `examples/kinds/${name}.yaml`)
      await kubectl(['apply', '-n', space, '-f', file], cluster)
      await kubectl(['apply', '-n', space, '--server-side', '--force-conflicts', '-f', file], cluster)
    }
    const daemon = await call('GET', 'tordaemons/tor')
    assert.equal(
      (daemon.body as { spec?: { bridges?: { transport?: string } } }).spec?.bridges?.transport,
      'obfs4',
    )
  })

  it('keeps what was applied, and writes nothing when it is applied again', async () => {
    for (const [index, example] of EXAMPLES.filter(({ wrong }) => wrong === undefined).entries()) {
      const kind = kindOf(example.kind)
      const object = documentOf({ ...example, name: `kept-${index}` })
      const path = `${kind.plural}/kept-${index}`
      const first = await apply(path, 'test', object)
      assert.equal(first.code, 201, first.body.message)
      const again = await apply(path, 'test', object)
      assert.equal(again.body.metadata.resourceVersion, first.body.metadata.resourceVersion)
      const read = await call('GET', path)
      assert.deepEqual(read.body.spec, withDefaults(example))
    }
  })

  it('sets defaults that change nothing, and none where there is no spec', async () => {
    const bare = await apply(
      'tordaemons/bare',
      'test',
      documentOf({ kind: 'TorDaemon', what: '', name: 'bare' }),
    )
    assert.equal(bare.code, 201, bare.body.message)
    assert.equal('spec' in bare.body, false)
    const empty = documentOf({ kind: 'TorDaemon', what: '', name: 'empty', spec: {} })
    assert.deepEqual((await apply('tordaemons/empty', 'test', empty)).body.spec, { logLevel: 'notice' })
  })

  it('drops unknown fields, and says so where it is asked to be strict', async () => {
    const object = documentOf({
      kind: 'OnionService',
      what: '',
      name: 'unknown',
      spec: { ports: [{ virtualPort: 80, backend: { service: 'web', port: 80, weight: 1 } }], colour: 'red' },
    })
    const strict = await call('POST', 'onionservices?dryRun=All&fieldValidation=Strict', object)
    assert.equal(strict.code, 400)
    assert.match(strict.body.message, /unknown field "spec\.colour"/)
    const warned = await call('POST', 'onionservices?dryRun=All&fieldValidation=Warn', object)
    assert.match(warned.warning, /unknown field/)
    const silent = await call('POST', 'onionservices?fieldValidation=Ignore', object)
    assert.equal(silent.code, 201, silent.body.message)
    assert.deepEqual(silent.body.spec, {
      ports: [{ virtualPort: 80, backend: { service: 'web', port: 80 } }],
      keyRetention: 'Retain',
    })
  })

  it('keeps status and spec apart', async () => {
    const object = documentOf({
      kind: 'OnionService',
      what: '',
      name: 'status',
      spec: { ports: [{ virtualPort: 80, backend: { service: 'web', port: 80 } }] },
    })
    const made = await apply('onionservices/status', 'test', { ...object, status: { ready: true } })
    assert.equal(made.code, 201, made.body.message)
    assert.equal('status' in made.body, false)
    const status = { observedGeneration: 1, ready: true, hostname: 'x.onion', conditions: [CONDITION] }
    const written = await apply('onionservices/status/status', 'postern', {
      ...object,
      spec: { ports: [] },
      status,
    })
    assert.equal(written.code, 200, written.body.message)
    assert.deepEqual(written.body.status, status)
    assert.deepEqual(written.body.spec, made.body.spec)
    assert.equal(written.body.metadata.generation, made.body.metadata.generation)
    const colour = { status: { colour: 'red' } }
    const merged = await call('PATCH', 'onionservices/status/status', colour, 'application/merge-patch+json')
    // What a newer operator says on these CRDs is kept.
    assert.deepEqual(merged.body.status, { ...status, colour: 'red' })
    // Two managers, one list of conditions.
    const other = await apply('onionservices/status/status', 'other', {
      ...object,
      status: { conditions: [{ ...CONDITION, type: 'Other' }] },
    })
    const { conditions } = other.body.status as { conditions: { type: string }[] }
    assert.deepEqual(
      conditions.map(({ type }) => type),
      ['Ready', 'Other'],
    )
    const wrong = await apply('onionservices/status/status', 'postern', {
      ...object,
      status: { conditions: [{ ...CONDITION, status: 'Yes' }] },
    })
    assert.equal(wrong.code, 422)
    assert.match(wrong.body.message, /status\.conditions\[0\]\.status/)
  })

  it('shows the columns that `postern get` shows', async () => {
    const shown: Record<string, object> = {
      OnionService: { hostname: `${'a'.repeat(56)}.onion`, ready: true, conditions: [CONDITION] },
      OnionProxy: {
        ready: false,
        targets: [{ name: 'libera', endpoint: 'shown.x.svc:6697', reachable: 'Unknown' }],
        conditions: [{ ...CONDITION, status: 'Unknown', reason: 'ProbePending' }],
      },
      TorDaemon: {
        ready: true,
        bootstrapProgress: 100,
        onionsPublished: 0,
        version: '0.4.9.11',
        conditions: [CONDITION],
      },
    }
    for (const kind of TOR_KINDS) {
      const good = EXAMPLES.find((example) => example.kind === kind.kind && example.wrong === undefined)!
      const object = documentOf({ ...good, name: 'shown' })
      await apply(`${kind.plural}/shown`, 'test', object)
      const status = shown[kind.kind]!
      const { body } = await apply(`${kind.plural}/shown/status`, 'postern', { ...object, status })
      for (const wide of [false, true]) {
        const args = ['get', kind.shortNames![0]!, 'shown', '-n', space, ...(wide ? ['-o', 'wide'] : [])]
        const table = (await kubectl(args, cluster)).trimEnd()
        const own = objectTable(kind, [body], { now: Date.now(), wide })
        // Ages run on between the two.
        const cells = (text: string): string[][] =>
          text.split('\n').map((line) =>
            line
              .trim()
              .replace(/\d+[smh]$/, 'AGE')
              .split(/\s+/),
          )
        assert.deepEqual(cells(table), cells(own))
      }
    }
    const all = await kubectl(['get', 'postern', '-n', space, '-o', 'name'], cluster)
    for (const kind of TOR_KINDS) {
      assert.match(all, new RegExp(`^${kind.kind.toLowerCase()}\\.tor\\.fr0st\\.dev/shown$`, 'm'))
    }
  })

  it('describes every field', async () => {
    for (const kind of TOR_KINDS) {
      const text = await kubectl(['explain', kind.plural, '--recursive=false'], cluster)
      assert.ok(text.replace(/\s+/g, ' ').includes(kind.description), text)
    }
    const backend = await kubectl(['explain', 'onionservices.spec.ports.backend.service'], cluster)
    assert.match(backend, /Name of a Service in the same namespace\./)
    const file = join(ROOT, 'deploy/base/crds')
    for (const kind of TOR_KINDS) {
      const crd = parse(readFileSync(join(file, `${kind.plural}.yaml`), 'utf8')) as {
        spec: { versions: { schema: { openAPIV3Schema: Schema } }[] }
      }
      assert.deepEqual(undescribed(crd.spec.versions[0]!.schema.openAPIV3Schema, kind.kind), [])
    }
  })

  it('takes the whole installation', async () => {
    // Without its Namespace a dry run refuses what is in it.
    const rendered = await kubectl(['kustomize', join(ROOT, 'deploy')], cluster)
    const moved = rendered.replaceAll('namespace: postern-system', `namespace: ${space}`)
    const out = await kubectl(
      ['apply', '--server-side', '--force-conflicts', '--validate=strict', '--dry-run=server', '-f', '-'],
      { ...cluster, input: moved },
    )
    assert.match(out, /deployment\.apps\/postern-operator serverside-applied/)
  })
})

interface Schema {
  description?: string
  properties?: Record<string, Schema>
  items?: Schema
}

/** Fields without a description; `metadata` is Kubernetes' own. */
function undescribed(schema: Schema, path: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    if (name === 'metadata' && !path.includes('.')) return []
    const here = `${path}.${name}`
    const inside = field.items ?? field
    return [...(field.description === undefined ? [here] : []), ...undescribed(inside, here)]
  })
}

function kindOf(name: string): ApiKind {
  return TOR_KINDS.find(({ kind }) => kind === name)!
}

function documentOf({ kind, name = 'example', spec }: Example): object {
  return {
    apiVersion: 'tor.fr0st.dev/v1alpha1',
    kind,
    metadata: { name },
    ...(spec === undefined ? {} : { spec }),
  }
}

/** What stands in the API server after an example was applied. */
function withDefaults({ kind, spec }: Example): unknown {
  return spec === undefined ? undefined : kindOf(kind).spec.parse(spec)
}
