import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { run } from '../run.ts'
import { type ImageOptions, packImage } from './images.ts'
import { tar } from './tar.ts'

const image: ImageOptions = {
  name: 'testbed.local/x:1',
  files: {
    '/bin/node': process.execPath,
    '/etc/text': { content: 'text' },
    '/etc/link': { link: 'text' },
  },
  scratch: ['/tmp'],
  entrypoint: ['/bin/node'],
}

async function folder(t: TestContext): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'images-'))
  t.after(() => rm(made, { recursive: true, force: true }))
  return made
}

test('an image holds its files, their folders, and the libraries of its programs; the same makes the same bytes', async (t) => {
  const to = await folder(t)
  const first = await readFile(await packImage(image, to))
  const path = await packImage(image, to)
  assert.ok(first.equals(await readFile(path)))
  await run('tar', ['-xf', path, '-C', to])
  const [manifest] = JSON.parse(await readFile(join(to, 'manifest.json'), 'utf8'))
  assert.deepEqual(manifest.RepoTags, [image.name])
  const config = JSON.parse(await readFile(join(to, manifest.Config), 'utf8'))
  assert.equal(config.config.User, '65532:65532')
  const layer = join(to, manifest.Layers[0])
  const sum = (await run('sha256sum', [layer])).split(' ')[0]
  assert.deepEqual(config.rootfs.diff_ids, [`sha256:${sum}`])
  const listed = await run('tar', ['-tvf', layer])
  for (const line of [
    /^drwxr-xr-x 0\/0 .* etc\/$/m,
    /^-rw-r--r-- 0\/0 .* 4 .* etc\/text$/m,
    /^l.* etc\/link -> text$/m,
    /^drwxrwxrwt .* tmp\/$/m,
    /^-rwxr-xr-x .* bin\/node$/m,
    /libc\.so\.6$/m,
    /ld-linux-[^/]*\.so\.\d$/m,
  ]) {
    assert.match(listed, line)
  }
})

test('an image that the kubelet would try to pull is refused', async (t) => {
  const to = await folder(t)
  for (const name of ['x:1', 'testbed.local/x', 'testbed.local/x:latest']) {
    await assert.rejects(packImage({ ...image, name }, to), { code: 'BadImage' }, name)
  }
  const missing = { ...image, files: { '/x': '/nowhere/x' } }
  await assert.rejects(packImage(missing, to), /\/nowhere\/x cannot be read/)
})

test('long paths are kept whole; what does not fit is refused', async (t) => {
  const to = join(await folder(t), 'x.tar')
  const path = `${'a'.repeat(90)}/${'b'.repeat(95)}`
  await writeFile(to, tar([{ path, kind: 'file', content: Buffer.from('x') }]))
  assert.equal(await run('tar', ['-tf', to]), `${path}\n`)
  const content = new Uint8Array()
  assert.throws(() => tar([{ path: 'c'.repeat(101), kind: 'file', content }]), /too long/)
  assert.throws(() => tar([{ path: 'l', kind: 'link', target: 'c'.repeat(101) }]), /too long/)
})
