import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Report } from './figure.ts'

/**
 * V8 grows lazily up to its limits, so the limits decide what a process takes; and without a compile cache 30 MB of it
 * are the type stripper, which no bundle has.
 */
const FLAGS = ['--max-semi-space-size=4', '--max-old-space-size=192']

/** The embedded store with 10,000 objects: in processes of their own, since memory is measured. */
export async function store(report: Report): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-store-'))
  try {
    const fill = await run('fill', folder)
    const load = await run('load', folder)
    report({ figure: 'store: writes one by one, each on the disk', value: fill.single, unit: '/s' })
    report({ figure: 'store: writes, 100 a transaction', value: fill.batched, unit: '/s' })
    report({ figure: 'store: 10,000 objects into a cache', value: load.list, unit: 'ms' })
    report({ figure: 'store: no-op applies', value: load.noop, unit: '/s' })
    report({
      figure: 'store: writes of a resync of 10,000 unchanged objects',
      value: load.writes,
      unit: '',
      bar: '0',
      ok: load.writes === 0,
    })
    report({
      figure: 'store: memory with 10,000 objects cached, after a resync',
      value: load.rss,
      unit: 'MB',
      bar: '<= 130 MB',
      ok: load.rss <= 130,
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
    rmSync(`${folder}-cache`, { recursive: true, force: true })
  }
}

async function run(step: string, folder: string): Promise<Figures> {
  const script = fileURLToPath(new URL('./store-child.ts', import.meta.url))
  const child = spawn(process.execPath, [...FLAGS, script, step, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: `${folder}-cache` },
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  let last = ''
  for await (const line of createInterface({ input: child.stdout })) last = line
  const code = await ended
  if (code !== 0) throw new Error(`bench/store-child.ts ${step} ended with ${code}`)
  return JSON.parse(last) as Figures
}

interface Figures {
  single: number
  batched: number
  list: number
  noop: number
  writes: number
  rss: number
}
