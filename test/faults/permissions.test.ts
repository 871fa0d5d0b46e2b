import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Condition } from '../../src/core/conditions.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { actAsServiceAccount, type User } from '../../testbed/kubernetes/access.ts'
import { kubectl } from '../../testbed/kubernetes/kubectl.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, none, seconds } from './eventually.ts'
import type { FaultProxy } from './fault-proxy.ts'
import { Operator, OperatorProcess } from './operator.ts'
import type { Space } from './space.ts'
import { World } from './world.ts'

/** The operator as the ServiceAccount that is installed for it, with exactly the roles that are generated. */

const DEPLOY = join(import.meta.dirname, '../../deploy')

describeWithKubernetes('permissions', () => {
  const stack = new AsyncDisposableStack()
  let world: World
  let user: User
  let proxy: FaultProxy

  before(async () => {
    world = stack.use(await World.start())
    await world.namespace('postern-system')
    user = await actAsServiceAccount(world.access, 'postern-system', 'postern-operator')
    proxy = stack.use(await world.proxy(user))
  })
  after(() => stack.disposeAsync())

  const applyRoles = async (
    file: string,
    change: (text: string) => string = (text) => text,
  ): Promise<void> => {
    const input = change(await readFile(join(DEPLOY, file), 'utf8'))
    await kubectl(['apply', '-f', '-'], { ...world.access, input })
  }
  /** The API server learns of a role a moment after it has taken it. */
  const inForce = (allowed: boolean, namespace: string, verb = 'create'): Promise<number> =>
    eventually(`${verb} configmaps to be ${allowed ? 'allowed' : 'refused'}`, async () => {
      const ask = ['auth', 'can-i', verb, 'configmaps', '-n', namespace]
      const answer = await kubectl(ask, user).catch(String)
      return (answer === 'yes\n') === allowed || [answer]
    })

  /** Everything that there is to make, to change and to delete. */
  async function everything(space: Space): Promise<void> {
    await space.service('web')
    await space.daemon('own', { logLevel: 'info' })
    await space.onion('web')
    await space.onion('blog', { daemon: 'own' })
    await space.proxy('irc', [6697])
    await world.declared()
    await space.onion('web', { ports: { 443: { service: 'web', port: 80 } } })
    await space.proxy('irc', [7000])
    await space.daemon('own', { logLevel: 'notice', options: { MaxCircuitDirtiness: '600' } })
    await world.declared()
    await space.removeProxy('irc')
    await space.removeOnion('blog')
    await space.removeDaemon('own')
    await world.declared()
    await space.removeOnion('web')
    await world.declared()
  }

  test('the ClusterRole is enough for everything, election included', async () => {
    const space = await world.space('rights-one')
    await applyRoles('base/rbac.yaml')
    await inForce(true, space.namespace)
    await using operator = await OperatorProcess.start(proxy.kubeconfig)
    await everything(space)
    await eventually('it to be ready', async () => none(await operator.troubles()))
    operator.child.kill('SIGTERM')
    assert.equal(await operator.ended, 0, operator.output.slice(-1000))
    assert.deepEqual(proxy.forbidden(), [])
    const events = proxy.calls.filter(({ plural, status }) => plural === 'events' && status < 300)
    assert.ok(events.length > 0, 'events are written too')
  })

  test('withdrawn and given back: it says which one is missing, and heals by itself', async (t) => {
    const space = await world.space('rights-two')
    await using operator = await Operator.start(proxy.kubeconfig)
    await space.service('web')
    await space.onion('web')
    await world.declared()

    await world.kubectl('delete', 'clusterrolebinding/postern-tor')
    await inForce(false, space.namespace)
    proxy.tear('reset')
    await space.onion('blog')
    await eventually('each permission to be named', () => {
      const said = operator.troubles()
      const unnamed = operator.states().filter(({ name }) => {
        const told = new RegExp(
          `"system:serviceaccount:postern-system:postern-operator" cannot (list|watch) resource "${name}"`,
        )
        return !said.some((line) => told.test(line))
      })
      return unnamed.length === 0 || said
    })
    const calls = proxy.calls.length
    await eventually(
      'some more tries',
      () => proxy.calls.length > calls + 20 || [`${proxy.calls.length - calls} calls`],
    )
    const given = performance.now()
    await applyRoles('base/rbac.yaml')
    await world.settled(t, operator, proxy, given, 'all permissions given back')
  })

  test('one permission to write withdrawn: a condition names it, the rest goes on, it heals', async (t) => {
    const [space] = world.spaces.slice(-1) as [Space]
    await using operator = await Operator.start(proxy.kubeconfig)
    await world.declared()
    // The rule for ConfigMaps, the one that stands alone.
    await applyRoles('base/rbac.yaml', (text) => text.replace(/ - configmaps\n/, ' - nothing\n'))
    await inForce(false, space.namespace, 'patch')
    await space.onion('third')
    await eventually('a condition to name it', async () => {
      const { conditions = [] } = ((await space.get(TOR_DAEMON, 'tor')).status ?? {}) as {
        conditions?: Condition[]
      }
      const applied = conditions.find(({ type }) => type === 'TopologyApplied')
      const named =
        applied?.reason === 'ObjectRefused' && /cannot patch resource "configmaps"/.test(applied.message)
      return named || conditions.map((one) => JSON.stringify(one))
    })
    const secret = await world.kubectl('get', 'secret/third-onion-key', '-n', space.namespace, '-o', 'name')
    assert.equal(secret, 'secret/third-onion-key\n')
    const given = performance.now()
    await applyRoles('base/rbac.yaml')
    await world.settled(t, operator, proxy, given, 'one permission given back')
  })

  test('the Role of a namespaced installation is enough there, and no other namespace is looked at', async (t) => {
    await world.kubectl('delete', 'clusterrolebinding/postern-tor', 'clusterrole/postern-tor')
    world.spaces.length = 0
    const space = await world.space('rights-only')
    const elsewhere = await world.space('rights-elsewhere')
    await elsewhere.service('web')
    await elsewhere.onion('web')
    world.spaces.pop()
    const roles = await readFile(join(DEPLOY, 'components/namespaced/roles.yaml'), 'utf8')
    const input = roles.replaceAll(/^( +namespace:) default$/gm, `$1 ${space.namespace}`)
    await kubectl(['apply', '-f', '-'], { ...world.access, input })
    await inForce(true, space.namespace)
    proxy.forget()
    const begun = performance.now()
    {
      await using operator = await Operator.start(proxy.kubeconfig, { namespaces: [space.namespace] })
      await everything(space)
      await world.settled(t, operator, proxy, begun, 'in one namespace')
    }
    assert.deepEqual(proxy.forbidden(), [])
    const strayed = proxy.calls.filter(({ namespace }) => namespace !== space.namespace)
    assert.deepEqual(strayed, [])
    assert.equal((await elsewhere.get(TOR_DAEMON, 'tor').catch((error) => error)).code, 'NotFound')
  })

  test('none for the Lease: readiness says so, with the remedy, and it heals', async (t) => {
    await applyRoles('base/rbac.yaml')
    await world.kubectl('delete', 'rolebinding/postern-operator', '-n', 'postern-system')
    await using operator = await OperatorProcess.start(proxy.kubeconfig)
    await eventually('readiness to say so', async () => {
      const said = await operator.troubles()
      return (
        said.some((line) =>
          /no permission to get leases.*bind a Role there that allows get, create and patch/.test(line),
        ) || said
      )
    })
    const given = performance.now()
    await applyRoles('base/rbac.yaml')
    await eventually('it to be ready', async () => none(await operator.troubles()))
    t.diagnostic(`the Lease allowed: ready after ${seconds(performance.now() - given)}`)
    assert.equal(operator.log.filter(({ msg }) => msg === 'cannot get or keep the Lease').length, 1)
  })
})
