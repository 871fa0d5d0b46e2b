import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readManifest } from '../../cluster/embedded/manifests.ts'
import { MANIFEST_KINDS } from '../manifest-kinds.ts'
import { ROOT } from '../version.ts'
import { claimDemoFolder } from './folder.ts'
import { writeManifests } from './manifests.ts'
import { failed, succeeded } from './report.ts'
import { startSite } from './site-server.ts'

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'pdt-'))
  t.after(() => rmSync(path, { recursive: true, force: true }))
  return path
}

test('a demo wipes the state of an earlier demo, and nothing else', (t) => {
  const state = join(folder(t), 'demo')
  claimDemoFolder(state).release()
  mkdirSync(join(state, 'net'))
  writeFileSync(join(state, 'objects.db'), '')
  const lock = claimDemoFolder(state)
  assert.equal(existsSync(join(state, 'net')) || existsSync(join(state, 'objects.db')), false)
  mkdirSync(join(state, 'net'))
  assert.throws(() => claimDemoFolder(state), { code: 'StateInUse' })
  assert.equal(existsSync(join(state, 'net')), true, 'a demo that runs is left alone')
  lock.release()

  const other = folder(t)
  writeFileSync(join(other, 'thesis.txt'), 'all of it')
  assert.throws(() => claimDemoFolder(other), /is not empty/)
  assert.deepEqual(readdirSync(other), ['thesis.txt'])
  assert.throws(() => claimDemoFolder(`/tmp/${'x'.repeat(80)}`), { code: 'StatePathTooLong' })
})

test('the examples are valid manifests, also with a daemon and a moved port', (t) => {
  for (const example of ['onion-site', 'onion-proxy']) {
    const from = join(ROOT, 'examples', example)
    for (const sitePort of [8080, 18080]) {
      const to = join(folder(t), 'm')
      writeManifests({ from, to, sitePort, torOptions: { TestingTorNetwork: '1', DirAuthority: 'a\nb' } })
      const all = readdirSync(to).map((file) =>
        readManifest(readFileSync(join(to, file), 'utf8'), file, MANIFEST_KINDS),
      )
      assert.deepEqual(
        all.flatMap(({ problems }) => problems),
        [],
      )
      const objects = all.flatMap(({ documents }) => documents.map(({ object }) => object!))
      const slice = objects.find(({ kind }) => kind === 'EndpointSlice') as
        | { ports?: { port: number }[] }
        | undefined
      if (example === 'onion-site') assert.equal(slice?.ports?.[0]?.port, sitePort)
    }
  }
})

test('the site is served from its folder only, and moves when its port is taken', async (t) => {
  const path = folder(t)
  mkdirSync(join(path, 'site'))
  writeFileSync(join(path, 'site', 'index.html'), '<p>hello')
  writeFileSync(join(path, 'secret'), 'no')
  const taken = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  const { port } = taken.address() as { port: number }
  const site = await startSite(join(path, 'site'), port)
  t.after(async () => {
    await site.close()
    taken.close()
  })
  assert.notEqual(site.port, port)
  const get = (url: string, method = 'GET'): Promise<Response> =>
    fetch(`http://127.0.0.1:${site.port}${url}`, { method })
  const page = await get('/?q=1')
  assert.equal(await page.text(), '<p>hello')
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  for (const url of ['/../secret', '/%2e%2e/secret', '/..%2fsecret', '/%00', '/%ff', '/absent']) {
    assert.equal((await get(url)).status, 404, url)
  }
  assert.equal((await get('/', 'POST')).status, 405)
})

test('a report says how long each step took, or why it ended', () => {
  const steps = [
    { name: 'network', seconds: 1.5 },
    { name: 'key', seconds: 0.25 },
  ]
  assert.deepEqual(succeeded('a.onion', steps), { ok: true, onion: 'a.onion', steps, total: 1.75 })
  assert.deepEqual(failed(new Error('not within 120 s'), 'descriptor', steps, ['x']), {
    ok: false,
    reason: 'descriptor: not within 120 s',
    steps,
    conditions: ['x'],
  })
})
