import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, posix } from 'node:path'
import { test } from 'node:test'

/** The rules of the house, read from the imports of the sources. */

const root = join(import.meta.dirname, '..')
/** Highest first: a room imports only from rooms below it. */
const ROOMS = [
  'cli',
  'console',
  'access',
  'tailnet',
  'identity',
  'tor',
  'agent',
  'relay',
  'controller',
  'cluster',
  'core',
]
const MAX_LINES = 400

interface Source {
  /** Below src, e.g. tor/agent/main.ts */
  path: string
  text: string
  /** Own files below src that it imports, types included. */
  own: string[]
  /** Own files outside src. */
  outside: string[]
  /** Packages and node: modules, with the names that are imported by braces. */
  packages: { name: string; names: string[] }[]
}

const sources = new Map(
  globSync('src/**/*.{ts,tsx}', { cwd: root }).map((file) => {
    const source = read(file.slice('src/'.length))
    return [source.path, source]
  }),
)
const code = [...sources.values()].filter((source) => !isTest(source.path))

function read(path: string): Source {
  const text = readFileSync(join(root, 'src', path), 'utf8')
  const source: Source = { path, text, own: [], outside: [], packages: [] }
  const statements = /^(?:import|export)\b([^'"]*?)\bfrom\s+['"]([^'"]+)['"]|^import\s+['"]([^'"]+)['"]/gm
  const calls = /\bimport\(\s*['"]([^'"]+)['"]\s*\)/g
  const imports = [
    ...[...text.matchAll(statements)].map((match) => ({
      name: (match[2] ?? match[3])!,
      names: namesOf(match[1]),
    })),
    ...[...text.matchAll(calls)].map((match) => ({ name: match[1]!, names: ['*'] })),
  ]
  for (const { name, names } of imports) {
    if (!name.startsWith('.')) source.packages.push({ name, names })
    else {
      const target = posix.join('src', dirname(path), name)
      if (target.startsWith('src/')) source.own.push(target.slice('src/'.length))
      else source.outside.push(target)
    }
  }
  return source
}

function namesOf(clause: string | undefined): string[] {
  const braces = clause?.match(/\{([^}]*)\}/)?.[1]
  if (braces === undefined) return ['*']
  return braces
    .split(',')
    .map((name) =>
      name
        .trim()
        .replace(/^type\s+/, '')
        .replace(/\s+as\s.*$/, ''),
    )
    .filter((name) => name !== '')
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts')
}

function roomOf(path: string): string {
  return path.split('/')[0]!
}

/** A folder within a domain, or a file that stands directly in it. */
function partOf(path: string): string {
  const parts = path.split('/')
  return parts.length > 2 ? `${parts[0]}/${parts[1]}/` : path
}

/** Files that a file leads to, itself included, and how it leads there. */
function reach(path: string): Map<string, string> {
  const seen = new Map([[path, path]])
  for (const [here, way] of seen) {
    for (const next of sources.get(here)?.own ?? []) {
      if (!seen.has(next)) seen.set(next, `${way} → ${next}`)
    }
  }
  return seen
}

/** A circle in a graph, as the names along it. */
function circle(graph: Map<string, Set<string>>): string[] | undefined {
  const done = new Set<string>()
  const walk = (node: string, way: string[]): string[] | undefined => {
    if (way.includes(node)) return [...way.slice(way.indexOf(node)), node]
    if (done.has(node)) return undefined
    for (const next of graph.get(node) ?? []) {
      const found = walk(next, [...way, node])
      if (found !== undefined) return found
    }
    done.add(node)
    return undefined
  }
  for (const node of graph.keys()) {
    const found = walk(node, [])
    if (found !== undefined) return found
  }
  return undefined
}

function graphBy(name: (path: string) => string): Map<string, Set<string>> {
  const graph = new Map<string, Set<string>>()
  for (const { path, own } of code) {
    const from = name(path)
    const to = graph.get(from) ?? new Set()
    graph.set(from, to)
    for (const target of own) if (name(target) !== from) to.add(name(target))
  }
  return graph
}

function none(faults: string[]): void {
  assert.deepEqual(faults, [], `\n  ${faults.join('\n  ')}`)
}

test('every file stands in a room of the house', () => {
  none(code.map((source) => source.path).filter((path) => !ROOMS.includes(roomOf(path))))
})

test('no import runs upwards', () => {
  none(
    code.flatMap(({ path, own }) =>
      own
        .filter((target) => ROOMS.indexOf(roomOf(target)) < ROOMS.indexOf(roomOf(path)))
        .map((target) => `${path} imports ${target}`),
    ),
  )
})

test('imports lead to files that are there, and leave src only for the demo', () => {
  none(
    code.flatMap(({ path, own, outside }) => [
      ...own
        .filter((target) => !sources.has(target))
        .map((target) => `${path} imports ${target}, which is missing`),
      ...outside
        .filter((target) => !(path.startsWith('cli/demo/') && target.startsWith('testbed/tor-network/')))
        .map((target) => `${path} imports ${target}`),
    ]),
  )
})

test('there are no circles, neither among files nor among rooms', () => {
  assert.equal(circle(graphBy((path) => path))?.join(' → '), undefined)
  assert.equal(circle(graphBy(partOf))?.join(' → '), undefined)
})

test('core imports nothing of ours', () => {
  none(
    code
      .filter((source) => roomOf(source.path) === 'core')
      .flatMap(({ path, own }) =>
        own.filter((target) => roomOf(target) !== 'core').map((target) => `${path} imports ${target}`),
      ),
  )
})

test('an agent and the relay know no Kubernetes', () => {
  const faults: string[] = []
  for (const { path } of code) {
    if (!/(^|\/)(agent|relay)\//.test(path)) continue
    for (const [here, way] of reach(path)) {
      if (['cluster', 'controller'].includes(roomOf(here))) faults.push(way)
      for (const { name } of sources.get(here)?.packages ?? []) {
        if (/^(zod|@kubernetes\/)/.test(name)) faults.push(`${way} → ${name}`)
      }
    }
  }
  none(faults)
})

test("a domain's operator and agent share its contract, never each other's code", () => {
  const faults: string[] = []
  for (const { path, own } of code) {
    const [domain, side] = path.split('/')
    const forbidden = { agent: ['operator', 'api'], operator: ['agent'] }[side ?? '']
    for (const target of own) {
      const [otherDomain, otherSide] = target.split('/')
      if (otherDomain === domain && forbidden?.includes(otherSide ?? ''))
        faults.push(`${path} imports ${target}`)
    }
  }
  none(faults)
})

test("the operator's side does I/O only where the design says", () => {
  const io =
    /^(node:(child_process|cluster|dgram|dns|fs|http|http2|https|net|sqlite|tls|worker_threads)|undici)/
  /** Of node:net, what only looks at addresses. */
  const pure = ['BlockList', 'isIP', 'isIPv4', 'isIPv6', 'SocketAddress']
  const allowed =
    /^(cli|cluster|console|relay|agent)\/|^tailnet\/(headscale|agent)\/|^identity\/(keys|reload)\/|^tor\/(agent|control)\/|^tor\/bridges\/distributor\.ts$/
  none(
    code
      .filter((source) => !allowed.test(source.path))
      .flatMap(({ path, packages }) =>
        packages
          .filter(({ name }) => io.test(name))
          .filter(({ name, names }) => name !== 'node:net' || !names.every((one) => pure.includes(one)))
          .map(({ name }) => `${path} imports ${name}`),
      ),
  )
})

test('files are short, in kebab-case, and export names', () => {
  const faults: string[] = []
  for (const { path, text } of sources.values()) {
    const lines = text.split('\n').length - 1
    if (lines > MAX_LINES) faults.push(`${path} has ${lines} lines: split it`)
    if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.test)?\.tsx?$/.test(basename(path)))
      faults.push(`${path} is not in kebab-case`)
    if (/^export default\b/m.test(text)) faults.push(`${path} has a default export`)
  }
  none(faults)
})
