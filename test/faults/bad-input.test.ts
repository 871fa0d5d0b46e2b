import assert from 'node:assert/strict'
import { createPrivateKey, sign } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { CONFIG_MAP, NAMESPACE, SECRET } from '../../src/cluster/kinds.ts'
import type { Condition } from '../../src/core/conditions.ts'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { HOSTNAME_FILE, SECRET_KEY_FILE, writeOnionKeyFiles } from '../../src/tor/onion/files.ts'
import { generateOnionKey } from '../../src/tor/onion/key.ts'
import { describeWithKubernetes } from '../../testbed/kubernetes/left-out.ts'
import { eventually, none, seconds } from './eventually.ts'
import { Operator, OperatorProcess, written } from './operator.ts'
import type { Space } from './space.ts'
import { stage } from './stage.ts'
import { quiet } from './world.ts'

/** What users, admins and installers get wrong, against a real API server. */

describeWithKubernetes('bad input', () => {
  let one: Space
  const set = stage({}, async (world) => {
    one = await world.space('bad-one')
    await one.service('web')
    await one.onion('web')
  })

  const conditionOf = async (space: Space, name: string, type: string): Promise<Condition | undefined> => {
    const { status } = await space.get(ONION_SERVICE, name)
    return status?.conditions?.find((one) => one.type === type)
  }

  test('a kubeconfig that names a missing file: told at the start, with the file', async () => {
    const { bed } = set.world
    const path = join(bed.state, 'no-such-file.kubeconfig')
    const text = await readFile(bed.access.kubeconfig, 'utf8')
    await writeFile(
      path,
      text.replace(/certificate-authority-data: .*/, 'certificate-authority: /no/such/ca.crt'),
    )
    await using operator = await OperatorProcess.start(path)
    assert.equal(await operator.ended, 2, operator.output)
    assert.match(operator.output, /no-such-file\.kubeconfig.*\/no\/such\/ca\.crt/)
    assert.equal(operator.output.trim().split('\n').length, 1, operator.output)
  })

  test('a token that has expired: told with the remedy; a new one in its file is taken up', async (t) => {
    const { world } = set
    const { bed, access } = world
    const claims = {
      iss: 'https://kubernetes.default.svc.cluster.local',
      sub: 'system:serviceaccount:default:default',
    }
    const past = Math.floor(Date.now() / 1000) - 60
    const expired = await jwt(access.pki, {
      ...claims,
      aud: [claims.iss],
      iat: past - 600,
      nbf: past - 600,
      exp: past,
    })
    const [tokenFile, path] = [join(bed.state, 'token'), join(bed.state, 'token.kubeconfig')]
    await writeFile(tokenFile, expired)
    const config = {
      clusters: [{ name: 'c', cluster: { server: access.url, 'certificate-authority': access.ca } }],
      users: [{ name: 'u', user: { tokenFile } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'c',
    }
    await writeFile(path, JSON.stringify(config))
    const binding = [
      'clusterrolebinding',
      'token',
      '--clusterrole=cluster-admin',
      '--serviceaccount=default:default',
    ]
    await world.kubectl('create', ...binding)
    await using operator = new Operator(path)
    await eventually('it to be told of every kind', () => {
      const said = operator.troubles()
      const told = said.filter((line) => /refused the token or certificate \(401\): log in anew/.test(line))
      return told.length >= 12 || said
    })
    assert.ok(!JSON.stringify(operator.log).includes(expired.slice(0, 40)), 'a token is in the log')
    await writeFile(tokenFile, (await world.kubectl('create', 'token', 'default')).trim())
    const since = performance.now()
    await operator.working
    await eventually('everything to be followed', () => none(operator.troubles()))
    t.diagnostic(`a new token in its file: at work after ${seconds(performance.now() - since)}`)
    await rm(tokenFile)
  })

  test('Secrets of the wrong type or with garbage are told, never touched, and heal', async (t) => {
    const { world, operator, proxy } = set
    const key = generateOnionKey()
    const files = writeOnionKeyFiles(key)
    const base64 = (content: string | Uint8Array): string => Buffer.from(content).toString('base64')
    const good = Object.fromEntries(Object.entries(files).map(([name, content]) => [name, base64(content)]))
    const cases: [name: string, secret: object, told: RegExp][] = [
      ['garbage', { data: { [SECRET_KEY_FILE]: base64('garbage') } }, /Secret garbage: /],
      ['empty', {}, /Secret empty: /],
      [
        'tls',
        { type: 'kubernetes.io/tls', data: { 'tls.crt': base64('a'), 'tls.key': base64('b') } },
        /Secret tls: /,
      ],
      ['large', { data: { [SECRET_KEY_FILE]: base64('x'.repeat(900_000)) } }, /Secret large: /],
      ['other-name', { data: { ...good, [HOSTNAME_FILE]: base64('a.onion') } }, /Secret other-name: /],
    ]
    const versions = new Map<string, string>()
    for (const [name, secret] of cases) {
      const { metadata } = await one.apply(SECRET, name, secret)
      versions.set(name, metadata.resourceVersion ?? '')
    }
    for (const name of [...cases.map(([name]) => name), 'absent']) {
      const ports = [{ virtualPort: 80, backend: { service: 'web', port: 80 } }]
      await one.apply(ONION_SERVICE, `key-${name}`, { spec: { ports, privateKeySecret: { name } } })
    }
    for (const [name, , told] of [...cases, ['absent', {}, /Secret absent does not exist/] as const]) {
      await eventually(`${name} to be told`, async () => {
        const found = await conditionOf(one, `key-${name}`, 'KeyValid')
        return (found?.status === 'False' && told.test(found.message)) || [JSON.stringify(found)]
      })
    }
    for (const [name, version] of versions)
      assert.equal((await one.get(SECRET, name)).metadata.resourceVersion, version)
    await eventually('the other onion to be none the worse', async () => {
      const found = await conditionOf(one, 'web', 'KeyValid')
      return found?.status === 'True' || [JSON.stringify(found)]
    })
    const since = performance.now()
    await one.apply(SECRET, 'absent', { data: good })
    await eventually('the key to be taken', async () => {
      const { status } = await one.get(ONION_SERVICE, 'key-absent')
      return status?.hostname === `${key.address}.onion` || [JSON.stringify(status)]
    })
    t.diagnostic(`the right Secret: taken after ${seconds(performance.now() - since)}`)
    for (const [name] of cases) await one.remove(ONION_SERVICE, `key-${name}`)
    await one.remove(ONION_SERVICE, 'key-absent')
    await world.settled(t, operator, proxy, performance.now(), 'all of it removed')
  })

  test('a namespace that is being deleted, and takes its time: no storm, no noise', async (t) => {
    const { world, proxy, operator } = set
    const space = await world.space('bad-ending')
    world.spaces.pop()
    await space.service('web')
    for (let index = 0; index < 5; index++) await space.onion(`web-${index}`)
    await eventually('it to be served', async () => {
      const found = await conditionOf(space, 'web-4', 'KeyValid')
      return found?.status === 'True' || [JSON.stringify(found)]
    })
    await quiet(proxy)
    // Somebody else's finalizer holds an onion, and with it the namespace.
    const hold = (finalizers: string[]): Promise<string> =>
      world.kubectl(
        'patch',
        'onionservice/web-0',
        '-n',
        space.namespace,
        '--type=merge',
        '-p',
        JSON.stringify({ metadata: { finalizers } }),
      )
    await hold(['example.org/held'])
    proxy.forget()
    const logged = operator.log.length
    await world.kubectl('delete', 'namespace', space.namespace, '--wait=false')
    await eventually('all but the held one to be gone', async () => {
      const names = (
        await world.kubectl(
          'get',
          'onionservices,deployments,secrets,tordaemons',
          '-n',
          space.namespace,
          '-o',
          'name',
        )
      ).trim()
      return names === 'onionservice.tor.fr0st.dev/web-0' || names.split('\n')
    })
    const refused = (): number =>
      proxy.calls.filter(({ namespace, status }) => namespace === space.namespace && status === 403).length
    const before = refused()
    await one.onion('meanwhile')
    await world.declared()
    await new Promise((resolve) => setTimeout(resolve, 10_000))
    t.diagnostic(`${refused()} writes refused, ${refused() - before} of them in the last 10 s`)
    assert.ok(refused() - before <= 20, written(proxy).slice(-20).join('\n'))
    const noise = operator.log.slice(logged).filter(({ level }) => level === 'warn' || level === 'error')
    assert.ok(noise.length <= 1, noise.map((line) => JSON.stringify(line)).join('\n'))
    await hold([])
    await eventually('the namespace to be gone', async () => {
      const found = await world.admin.get(NAMESPACE, { name: space.namespace }).catch((error) => error)
      return found.code === 'NotFound' || [JSON.stringify(found.status)]
    })
    await one.removeOnion('meanwhile')
    await world.settled(t, operator, proxy, performance.now(), 'the namespace is gone')
  })

  test('more than a ConfigMap holds: it says what to split, what was in force stays, and it heals', async (t) => {
    const { world, proxy, operator } = set
    const space = await world.space('bad-large')
    await space.service('web')
    // 0.9 MB of the one that a ConfigMap has room for.
    const options = Object.fromEntries(
      Array.from({ length: 55 }, (_, index) => [`Option${index}`, 'x'.repeat(16_384)]),
    )
    await space.daemon('tor', { options })
    await space.onion('first')
    await world.declared()
    const topology = async (): Promise<string> =>
      (await space.get(CONFIG_MAP, 'tor-topology')).data?.['topology.json'] ?? ''
    const before = await topology()
    // 2 kB each.
    const ports = Object.fromEntries(
      Array.from({ length: 32 }, (_, index) => [10_000 + index, { service: 'web', port: 80 }]),
    )
    const begun = performance.now()
    for (let index = 0; index < 60; index++) await space.onion(`web-${index}`, { ports })
    await eventually('the daemon to say so', async () => {
      const { conditions = [] } = (await space.get(TOR_DAEMON, 'tor')).status ?? {}
      const found = conditions.find(({ type }) => type === 'TopologyApplied')
      const told = /^61 onions .*\(10\d{5} bytes\).* move some to another TorDaemon by spec\.daemonRef/
      const said = found?.reason === 'TopologyTooLarge' && told.test(found.message)
      return said || conditions.map((one) => JSON.stringify(one))
    })
    t.diagnostic(`it says so after ${seconds(performance.now() - begun)}`)
    const kept = await topology()
    assert.ok(kept.length >= before.length && kept.length <= 1_000_000, `${kept.length} bytes`)
    assert.ok(kept.includes('"first"'), 'what was in force stays')
    const freed = performance.now()
    await space.daemon('second')
    for (let index = 0; index < 30; index++) await space.onion(`web-${index}`, { ports, daemon: 'second' })
    await world.settled(t, operator, proxy, freed, '30 moved to another daemon')
  })
})

/** As the API server signs the tokens of ServiceAccounts. */
async function jwt(pki: string, claims: object): Promise<string> {
  const key = createPrivateKey(await readFile(join(pki, 'sa.key')))
  const part = (content: object): string => Buffer.from(JSON.stringify(content)).toString('base64url')
  const text = `${part({ alg: 'ES256', typ: 'JWT' })}.${part(claims)}`
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}
