import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'

export const ROOT: string = join(import.meta.dirname, '..', '..')

export interface BundleSpec {
  /** Of the file that is made, without `.mjs`. */
  name: 'postern' | 'tor-agent'
  /** Below the repository's root. */
  entry: string
  /** Bytes that it should stay within. */
  budget: number
  /** Flags of V8 that NODE_OPTIONS may not name. */
  flags: readonly string[]
}

export interface Bundle {
  file: string
  bytes: number
  /** Names of the npm packages with at least a byte in it, sorted. */
  packages: string[]
  /** Own files in it, below the repository's root, sorted. */
  sources: string[]
}

/**
 * In processes that wait most of their time V8's topmost compiler takes more memory (4 MB) than it saves work; so does
 * the lowest one (6 MB) in the operator, which also has V8 collect early rather than grow.
 */
export const BUNDLES: readonly BundleSpec[] = [
  {
    name: 'postern',
    entry: 'src/cli/main.ts',
    budget: 1_600_000,
    flags: ['--no-turbofan', '--no-sparkplug', '--memory-saver-mode'],
  },
  { name: 'tor-agent', entry: 'src/tor/agent/main.ts', budget: 300_000, flags: ['--no-turbofan'] },
]

/** The file runs as a program where Node stands at /usr/bin/node. */
function banner({ flags }: BundleSpec): string {
  return `#!/usr/bin/node
import{createRequire as posternCreateRequire}from'node:module';
import{setFlagsFromString as posternSetFlags}from'node:v8';
${flags.map((flag) => `posternSetFlags('${flag}');`).join('')}
const require=posternCreateRequire(import.meta.url);`
}

/**
 * Leaves out what no tree shaker can: undici's index, which brings fetch, web sockets, caches and mocks besides the
 * pool that our transport takes, and zod's messages in forty languages.
 */
const LEAN: Plugin = {
  name: 'lean',
  setup(setup) {
    setup.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: 'export {}' }))
    setup.onResolve({ filter: /^undici$/ }, () => ({ path: 'pool', namespace: 'undici' }))
    setup.onLoad({ filter: /.*/, namespace: 'undici' }, () => ({
      contents: `
        import api from 'undici/lib/api/index.js'
        import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
        Object.assign(Dispatcher.prototype, api)
        export { default as Pool } from 'undici/lib/dispatcher/pool.js'`,
      resolveDir: ROOT,
    }))
  },
}

/**
 * Makes one file of everything that an entry needs, but for Node's own modules.
 *
 * @param folder where it is put
 * @throws errors of esbuild, which has printed them already
 */
export async function makeBundle(spec: BundleSpec, folder: string, version: string): Promise<Bundle> {
  const file = join(folder, `${spec.name}.mjs`)
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: [spec.entry],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node26',
    minify: true,
    sourcemap: 'external',
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
    banner: { js: banner(spec) },
    define: { POSTERN_VERSION: JSON.stringify(version) },
    plugins: [LEAN],
  })
  const output = Object.entries(metafile.outputs).find(([name]) => name.endsWith('.mjs'))?.[1]
  const inputs = Object.entries(output?.inputs ?? {})
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([name]) => name)
  return {
    file,
    bytes: output?.bytes ?? 0,
    packages: [...new Set(inputs.flatMap((name) => packageOf(name) ?? []))].sort(),
    sources: inputs.filter((name) => !name.includes('node_modules/') && !name.includes(':')).sort(),
  }
}

function packageOf(input: string): string | undefined {
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1]
}
