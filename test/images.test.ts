import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type Image, makeImages } from '../scripts/images/make.ts'
import { searchPath } from '../src/cli/programs.ts'
import { version } from '../src/cli/version.ts'

/** The images: the same bytes twice, and programs that run with nothing but what stands in them. */

const run = promisify(execFile)
const NEEDED = { buildah: 'buildah', strip: 'binutils', tor: 'tor', obfs4proxy: 'obfs4proxy' }
/** Any user but root, and one that no file of the image names. */
const USER = '12345:23456'

async function missing(): Promise<string[]> {
  const packages: string[] = []
  for (const [program, aptPackage] of Object.entries(NEEDED)) {
    const env = { ...process.env, PATH: searchPath() }
    await run('sh', ['-c', `command -v ${program}`], { env }).catch(() => packages.push(aptPackage))
  }
  return packages
}

const lacking = await missing()
const skip = lacking.length === 0 ? false : `needs: apt-get install ${lacking.join(' ')}`

describe('images', { skip, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'images-'))
  let images: Record<string, Image>

  const build = async (name: string): Promise<Image[]> =>
    makeImages({
      folder: join(folder, name),
      version: version(),
      revision: '0123456789abcdef',
      timestamp: 1_700_000_000,
    })

  before(async () => {
    const made = await build('first')
    images = Object.fromEntries(made.map((image) => [image.name, image]))
    for (const image of made) await unpack(image)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  const rootOf = (image: string): string => join(folder, `${image}-root`)
  const blob = (image: string, digest: string): string =>
    join(folder, `${image}-layout`, 'blobs', ...digest.split(':'))

  async function unpack({ name, archive, layers }: Image): Promise<void> {
    const layout = join(folder, `${name}-layout`)
    for (const place of [layout, rootOf(name)]) mkdirSync(place)
    await run('tar', ['-xf', archive, '-C', layout])
    const owner = process.getuid?.() === 0 ? ['--same-owner', '--same-permissions'] : []
    for (const { digest } of layers) {
      await run('tar', ['-xzf', blob(name, digest), '-C', rootOf(name), ...owner])
    }
  }

  /** Runs a program inside an image's files as that user. */
  async function inside(image: string, ...command: string[]): Promise<{ code: number; output: string }> {
    const args = [`--userspec=${USER}`, rootOf(image), ...command]
    return run('chroot', args, { env: { PATH: `/usr/bin:/usr/sbin` }, timeout: 60_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, output: `${stdout}${stderr}` }),
      ({ code, stdout, stderr }) => ({ code, output: `${stdout}${stderr}` }),
    )
  }

  function configOf(image: string): { created: string; config: Record<string, unknown> } {
    const manifest = JSON.parse(readFileSync(blob(image, images[image]!.digest), 'utf8'))
    return JSON.parse(readFileSync(blob(image, manifest.config.digest), 'utf8'))
  }

  test('built again, they are the same to the byte', async () => {
    const again = await build('again')
    for (const image of again) {
      const before = images[image.name]!
      assert.equal(image.digest, before.digest, image.name)
      assert.ok(
        readFileSync(image.archive).equals(readFileSync(before.archive)),
        `${image.name}: the archive`,
      )
    }
  })

  test('both stand on the same layer, and tor adds only its own', () => {
    const { postern, 'postern-tor': tor } = images
    assert.deepEqual(tor!.layers[0], postern!.layers[0])
    assert.equal(postern!.layers.length, 2)
    assert.equal(tor!.layers.length, 2)
  })

  test('they say how they are run, and what they are', () => {
    const { created, config } = configOf('postern-tor')
    assert.equal(created, '2023-11-14T22:13:20Z')
    assert.equal(config.User, '65532:65532')
    assert.deepEqual(config.Entrypoint, ['/usr/bin/postern-tor-agent'])
    const labels = config.Labels as Record<string, string>
    assert.equal(labels['org.opencontainers.image.version'], version())
    assert.equal(labels['org.opencontainers.image.revision'], '0123456789abcdef')
    assert.equal(labels['org.opencontainers.image.created'], '2023-11-14T22:13:20Z')
    assert.ok(!Object.keys(labels).some((name) => name.startsWith('io.buildah')))
    assert.deepEqual(configOf('postern').config.Entrypoint, ['/usr/bin/postern'])
  })

  test('nothing in them needs a certain user, and nobody may write to what runs', async () => {
    for (const image of Object.keys(images)) {
      const find = async (...what: string[]): Promise<string[]> =>
        (await run('find', [rootOf(image), '-mindepth', '1', ...what, '-printf', '/%P\n'])).stdout
          .split('\n')
          .filter((line) => line !== '')
          .sort()
      const open = await find('!', '-type', 'l', '-perm', '/o=w')
      const scratch = image === 'postern' ? ['/tmp'] : ['/run/postern', '/tmp', '/var/lib/postern']
      assert.deepEqual(open, scratch)
      assert.deepEqual(await find('-perm', '/6000'), [], 'set-uid')
      assert.deepEqual(await find('-type', 'f', '!', '-perm', '-o=r'), [], 'not for everybody to read')
      assert.deepEqual(await find('-type', 'd', '!', '-perm', '-o=rx'), [], 'not for everybody to enter')
      if (process.getuid?.() === 0) assert.deepEqual(await find('!', '-user', 'root'), [])
      assert.deepEqual(await find('-name', '*sh', '-type', 'f', '-path', '*/bin/*'), [], 'a shell')
    }
  })

  test('the bill names every part with its version', () => {
    for (const [image, expected] of Object.entries({
      postern: ['pkg:npm/zod@', 'pkg:npm/undici@', 'pkg:deb/debian/libc6@'],
      'postern-tor': [
        'pkg:npm/pino@',
        'pkg:deb/debian/tor@',
        'pkg:deb/debian/libssl',
        'pkg:deb/debian/obfs4proxy@',
      ],
    })) {
      const file = join(rootOf(image), 'usr', 'share', 'postern', `${image}.cdx.json`)
      const bill = JSON.parse(readFileSync(file, 'utf8')) as { components: { purl: string }[] }
      const purls = bill.components.map(({ purl }) => purl)
      for (const start of [...expected, `pkg:npm/node-linux-${process.arch}@${process.versions.node}`]) {
        assert.ok(
          purls.some((purl) => purl.startsWith(start)),
          `${image}: ${start} in ${purls.join(' ')}`,
        )
      }
    }
  })

  describe('as any user, with nothing around', {
    skip: process.getuid?.() === 0 ? false : 'chroot needs root',
  }, () => {
    test('the operator', async () => {
      assert.deepEqual(await inside('postern', '/usr/bin/postern', '--version'), {
        code: 0,
        output: `${version()}\n`,
      })
      const { code, output } = await inside('postern', 'postern', 'operator', '--log-level', 'loud')
      assert.equal(code, 2, output)
      assert.match(output, /--log-level/)
    })

    test('the agent', async () => {
      const { code, output } = await inside('postern-tor', 'postern-tor-agent')
      assert.equal(code, 2, output)
      assert.match(output, /usage: tor-agent/)
    })

    test('tor and obfs4proxy', async () => {
      const tor = await inside('postern-tor', 'tor', '--version')
      assert.equal(tor.code, 0, tor.output)
      assert.match(tor.output, /^Tor version \d/m)
      const obfs4proxy = await inside('postern-tor', 'obfs4proxy', '-version')
      assert.equal(obfs4proxy.code, 0, obfs4proxy.output)
      assert.match(obfs4proxy.output, /^obfs4proxy-/)
    })
  })
})
