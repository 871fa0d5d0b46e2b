import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, PosternError } from '../../src/core/errors.ts'
import { startTorNetwork } from '../../testbed/tor-network/network.ts'

/**
 * Makes the fixture of a release: runs `postern up` of a checkout on `manifests/` in a private Tor network, and keeps
 * its state as it is while everything runs.
 *
 * Usage: node test/upgrade/capture.ts CHECKOUT   (with its dependencies installed)
 */

const LIMIT_MS = 240_000
/** Where the manifests have the backend: an address of this machine that nothing else listens on. */
const BACKEND = { host: '127.83.7.1', port: 8080 }
/** Daemons, onions and proxies that come of the manifests. */
const DOORS = 7
/** What of ours is never ready, on purpose. */
const NEVER_READY = new Set(['OnionService lab/half'])

interface Row {
  json: string
  managers: string
}
interface Seen {
  kind: string
  metadata: { namespace?: string; name: string }
  status?: { ready?: boolean }
}

/** Reads with nothing of Postern's own: the file is of another version than this one. */
function read(file: string): (Row & { object: Seen })[] {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5000 })
  try {
    const rows = db.prepare('SELECT json, managers FROM objects ORDER BY kind, namespace, name').all()
    return (rows as unknown as Row[]).map((row) => ({ ...row, object: JSON.parse(row.json) as Seen }))
  } finally {
    db.close()
  }
}

/** What of the daemons, onions and proxies is not ready, a line each. */
function unready(file: string): string[] {
  let rows: ReturnType<typeof read>
  try {
    rows = read(file)
  } catch (error) {
    return [`no state yet: ${messageOf(error)}`]
  }
  const doors = rows
    .map(({ object }) => object)
    .filter(({ kind }) => ['OnionService', 'OnionProxy', 'TorDaemon'].includes(kind))
  const waiting = doors.flatMap(({ kind, metadata, status }) => {
    const id = `${kind} ${metadata.namespace}/${metadata.name}`
    return status?.ready === true || (status && NEVER_READY.has(id))
      ? []
      : [`${id}: ${JSON.stringify(status)}`]
  })
  return doors.length < DOORS ? [`${doors.length} objects of ${DOORS}`, ...waiting] : waiting
}

async function capture(checkout: string): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string }
  const target = join(import.meta.dirname, version)
  if (existsSync(target)) {
    throw new PosternError('FixtureExists', `${target} is there: what a release left is not made anew`)
  }
  const folder = mkdtempSync(join(tmpdir(), 'pup-'))
  await using undo = new AsyncDisposableStack()
  undo.defer(() => rmSync(folder, { recursive: true, force: true }))
  const backend = createServer((_request, response) => response.end('here I am')).listen(BACKEND)
  undo.defer(() => {
    backend.closeAllConnections()
    backend.close()
  })
  await once(backend, 'listening')
  const network = undo.use(await startTorNetwork({ state: join(folder, 'n') }))

  // Also daemons that nobody declares use the private network: their tor is one that knows no other.
  const defaults = join(folder, 'torrc')
  const lines = Object.entries(network.options).flatMap(([name, value]) =>
    value.split('\n').map((line) => `${name} ${line}\n`),
  )
  writeFileSync(defaults, lines.join(''))
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const tor = `#!/bin/sh
PATH=${process.env.PATH}:/usr/sbin:/sbin
[ "$1" = --defaults-torrc ] && shift 2
exec tor --defaults-torrc ${defaults} "$@"
`
  writeFileSync(join(bin, 'tor'), tor, { mode: 0o755 })

  const state = join(folder, 's')
  let output = ''
  const up = spawn(
    join(checkout, 'bin/postern'),
    ['up', join(import.meta.dirname, 'manifests'), '--state', state],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1', PATH: [bin, process.env.PATH].join(delimiter) },
    },
  )
  const ended = new Promise((done) => up.once('exit', done))
  undo.defer(async () => {
    up.kill('SIGTERM')
    await ended
  })
  for (const stream of [up.stdout, up.stderr]) stream?.on('data', (chunk) => (output += String(chunk)))

  const file = join(state, 'objects.db')
  const deadline = Date.now() + LIMIT_MS
  for (let waiting = unready(file); waiting.length > 0; waiting = unready(file)) {
    if (Date.now() > deadline || up.exitCode !== null) {
      throw new PosternError('NotReady', `not ready:\n${waiting.join('\n')}\n${output}`)
    }
    await sleep(500)
  }
  mkdirSync(target)
  const copy = join(target, 'objects.db')
  const db = new DatabaseSync(file, { timeout: 5000 })
  db.exec(`VACUUM INTO '${copy}'`)
  db.close()
  const objects = read(copy).map(({ json, managers }) => `{"object":${json},"managers":${managers}}\n`)
  writeFileSync(join(target, 'objects.jsonl'), objects.join(''))
  return target
}

const [checkout] = process.argv.slice(2)
try {
  if (checkout === undefined)
    throw new PosternError('BadArguments', 'name the checkout whose state is wanted')
  console.log(await capture(resolve(checkout)))
} catch (error) {
  console.error(`capture: ${messageOf(error)}`)
  process.exitCode = 1
}
