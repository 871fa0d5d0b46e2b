import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Plan } from '../../controller/plan.ts'
import type { TorDaemon } from '../api/tor-daemon.ts'
import { plan } from './plan.ts'
import { DAEMON, NOW, observed, SETTINGS } from './plan-fixture.ts'

type Spec = NonNullable<TorDaemon['spec']>

interface PodSpec {
  securityContext: Record<string, unknown>
  terminationGracePeriodSeconds?: number
  volumes: { name: string }[]
  containers: [{ args: string[]; volumeMounts: { name: string; mountPath: string }[] }]
}
interface Deployment {
  spec: { strategy: { type: string; rollingUpdate?: object }; template: { spec: PodSpec } }
}

const planned = (spec: Spec, more: object = {}): Plan =>
  plan(observed({ object: { ...DAEMON, spec }, settings: { ...SETTINGS, lingerSeconds: 120 }, ...more }), NOW)
const deploymentOf = (result: Plan): Deployment =>
  result.apply.find(({ kind }) => kind === 'Deployment') as unknown as Deployment
const claimOf = (result: Plan) => result.apply.find(({ kind }) => kind === 'PersistentVolumeClaim')

test('without a wish nothing is kept, and a pod starts beside its predecessor', () => {
  const result = planned({})
  assert.equal(claimOf(result), undefined)
  const { strategy, template } = deploymentOf(result).spec
  assert.equal(strategy.type, 'RollingUpdate')
  assert.equal(template.spec.containers[0].args.includes('--keep'), false)
  assert.deepEqual(template.spec.securityContext, {
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  })
})

test('a claim goes with its daemon, and tor itself stays in a folder of the pod', () => {
  const result = planned({ persistence: {} })
  const claim = claimOf(result)
  assert.equal(claim?.metadata.name, 'tor-state')
  assert.equal(claim?.metadata.ownerReferences?.[0]?.uid, 'uid-tor')
  assert.deepEqual(claim?.spec, {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '100Mi' } },
  })
  const { spec } = deploymentOf(result).spec.template
  const [{ args, volumeMounts }] = spec.containers
  assert.deepEqual(spec.volumes.slice(2), [
    { name: 'data', emptyDir: {} },
    { name: 'run', emptyDir: { medium: 'Memory' } },
    { name: 'state', persistentVolumeClaim: { claimName: 'tor-state' } },
  ])
  const { mountPath } = volumeMounts.find(({ name }) => name === 'state')!
  assert.equal(args[args.indexOf('--keep') + 1], mountPath)
  assert.notEqual(args[args.indexOf('--data') + 1], mountPath)
})

test('all of a claim can be chosen', () => {
  const persistence = { size: '1Gi', storageClassName: 'fast', accessMode: 'ReadWriteMany' } as const
  assert.deepEqual(claimOf(planned({ persistence }))?.spec, {
    accessModes: ['ReadWriteMany'],
    storageClassName: 'fast',
    resources: { requests: { storage: '1Gi' } },
  })
})

for (const [accessMode, beside] of [
  ['ReadWriteOnce', false],
  ['ReadWriteOncePod', false],
  ['ReadWriteMany', true],
] as const) {
  test(`${accessMode}: a pod ${beside ? 'starts beside' : 'waits for the end of'} its predecessor`, () => {
    const { strategy, template } = deploymentOf(planned({ persistence: { accessMode } })).spec
    const [{ args }] = template.spec.containers
    assert.equal(strategy.type, beside ? 'RollingUpdate' : 'Recreate')
    assert.equal('rollingUpdate' in strategy, beside)
    // A pod that waits for a successor which waits for it would stand for two minutes.
    assert.equal(args.includes('--linger'), beside)
    assert.equal(template.spec.terminationGracePeriodSeconds, beside ? 140 : undefined)
  })
}

test("files of the volume belong to the image's group, or to the one that is given", () => {
  const group = (spec: Spec): unknown => deploymentOf(planned(spec)).spec.template.spec.securityContext
  assert.deepEqual(group({ persistence: {} }), {
    fsGroup: 65532,
    fsGroupChangePolicy: 'OnRootMismatch',
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  const given = { podTemplate: { spec: { securityContext: { fsGroup: 1000, runAsUser: 1000 } } } }
  assert.deepEqual(group({ persistence: {}, ...given }), {
    fsGroup: 1000,
    fsGroupChangePolicy: 'OnRootMismatch',
    runAsUser: 1000,
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  })
})

test('a claim goes when it is not wanted any more', () => {
  const claim = { ...claimOf(planned({ persistence: {} }))! }
  claim.metadata = { ...claim.metadata, uid: 'uid-claim' }
  const gone = planned({}, { claims: [claim] })
  assert.deepEqual(
    gone.remove.map(({ kind, name, uid }) => `${kind} ${name} ${uid}`),
    ['PersistentVolumeClaim tor-state uid-claim'],
  )
  assert.deepEqual(planned({ persistence: {} }, { claims: [claim] }).remove, [])
})
