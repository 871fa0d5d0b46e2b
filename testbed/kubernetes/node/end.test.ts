import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, statSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import type { NodeClusterAccess } from '../lazy-cluster.ts'
import { nodeMissing } from '../left-out.ts'
import { openNetwork } from '../netns.ts'
import { waitUntil } from './wait.ts'

const skip = await nodeMissing()

describe('the end of a node', skip === undefined ? {} : { skip }, () => {
  test('leaves nothing', async (t) => {
    const { child, access } = await start()
    t.after(() => child.kill('SIGKILL'))
    const traces = tracesOf(access)
    const mounts = () => readFile('/proc/self/mountinfo', 'utf8')
    assert.ok(!(await mounts()).includes(access.state), 'its mounts are seen on the machine')
    assert.ok((await processesOf(access.state)).length > 5, 'its processes are not found')
    child.kill('SIGTERM')
    await once(child, 'exit')
    assert.equal(child.exitCode, 0)
    assert.deepEqual(await processesOf(access.state), [])
    assert.deepEqual(stillThere(traces), [])
  })

  test('comes with the end of its process, even by kill -9; the next one removes what is left on disk', async (t) => {
    const { child, access } = await start()
    t.after(() => child.kill('SIGKILL'))
    const traces = tracesOf(access)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const left = () => processesOf(access.state)
    await waitUntil('all processes to be gone', 30_000, async () => (await left()).length === 0, left)

    const folder = await mkdtemp(join(tmpdir(), 'end-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const next = await openNetwork(folder)
    await next!.close()
    assert.deepEqual(stillThere(traces), [])
  })
})

/** As by hand: a process of its own that holds a cluster with a node. */
async function start(): Promise<{ child: ChildProcess; access: NodeClusterAccess }> {
  const program = join(import.meta.dirname, '../../main.ts')
  const child = spawn(process.execPath, [program, 'kubernetes', '--node', '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const closed = once(child, 'close')
  let said = ''
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (said += text))
  for await (const line of createInterface(child.stdout!)) return { child, access: JSON.parse(line) }
  const how = await closed
  throw new Error(`the test bed ended before it was ready: ${how.join(' ')} ${said}`)
}

/** Ids of processes that were started with a path of this run, or that see a mount of it, as pods and shims do. */
async function processesOf(state: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const files = ['cmdline', 'mountinfo'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8'))
      // Those that end meanwhile cannot be read.
      const texts = await Promise.all(files.map((text) => text.catch(() => '')))
      return texts.some((text) => text.includes(`${state}/`)) ? [Number(pid)] : []
    }),
  )
  return found.flat()
}

/** What is on this machine of a running cluster: paths, and the number by which each is known from a later one of that name. */
function tracesOf({ state, node, network }: NodeClusterAccess): Map<string, number> {
  const { namespace } = network
  const cgroups = globSync(`/sys/fs/cgroup{,/*}${node.cgroup}`)
  const link = `/sys/class/net/${namespace!.replace('-', '')}`
  const paths = [state, `/run/netns/${namespace}`, link, ...cgroups]
  assert.ok(cgroups.length > 0)
  return new Map(paths.map((path) => [path, statSync(path).ino]))
}

function stillThere(traces: Map<string, number>): string[] {
  const known = ([path, number]: [string, number]) =>
    statSync(path, { throwIfNoEntry: false })?.ino === number
  return [...traces].filter(known).map(([path]) => path)
}
