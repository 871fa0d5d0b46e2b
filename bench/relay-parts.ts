import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** The child processes of a bench: they end with it. */
export class Children {
  readonly #running: ChildProcess[] = []

  start(command: string, args: string[]): ChildProcess {
    // Its own group, since socat forks a process for each connection.
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
    child.on('error', () => {})
    this.#running.push(child)
    return child
  }

  stop(): void {
    for (const { pid } of this.#running) {
      if (pid === undefined) continue
      try {
        process.kill(-pid, 'SIGKILL')
      } catch {
        // It has ended already.
      }
    }
  }
}

/** Whether a program is on the PATH. */
export async function installed(program: string): Promise<boolean> {
  return run('which', [program]).then(
    () => true,
    () => false,
  )
}

/** A port of loopback that is free right now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}

/** Waits until something listens there. */
export async function listening(port: number): Promise<void> {
  const deadline = performance.now() + 5_000
  for (;;) {
    const up = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (up) return
    if (performance.now() > deadline) throw new Error(`nothing listens on 127.0.0.1:${port} after 5 s`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** haproxy in one thread: relays TCP ports to backends, and answers HTTP requests itself on `httpPort`. */
export async function startHaproxy(
  children: Children,
  folder: string,
  name: string,
  options: { relays?: { from: number; to: number }[]; httpPort?: number },
): Promise<void> {
  const { relays = [], httpPort } = options
  const lines = ['global', ' nbthread 1', ' maxconn 4096', 'defaults', ' timeout connect 5s']
  lines.push(' timeout client 60s', ' timeout server 60s')
  for (const { from, to } of relays) {
    lines.push(`listen tcp${from}`, ' mode tcp', ` bind 127.0.0.1:${from}`, ' option splice-auto')
    lines.push(` server backend 127.0.0.1:${to}`)
  }
  if (httpPort !== undefined) {
    lines.push('frontend web', ' mode http', ` bind 127.0.0.1:${httpPort}`)
    lines.push(' http-request return status 200 content-type text/plain string ok')
  }
  const file = join(folder, `${name}.cfg`)
  await writeFile(file, `${lines.join('\n')}\n`)
  children.start('haproxy', ['-db', '-q', '-f', file])
  for (const port of [...relays.map((r) => r.from), ...(httpPort === undefined ? [] : [httpPort])])
    await listening(port)
}

export async function startSocat(children: Children, to: number): Promise<number> {
  const port = await freePort()
  const listenAt = `TCP-LISTEN:${port},fork,reuseaddr,bind=127.0.0.1,backlog=1024,nodelay`
  children.start('socat', [listenAt, `TCP:127.0.0.1:${to},nodelay`])
  await listening(port)
  return port
}

/** Our relay to that backend port; resolves with its own. */
export function startRelay(children: Children, to: number): Promise<number> {
  const child = children.start(process.execPath, [
    join(import.meta.dirname, 'relay-process.ts'),
    '127.0.0.1',
    String(to),
  ])
  // No probe here: it would reach an iperf3 behind it, which serves one at a time.
  return new Promise<number>((resolve, reject) => {
    child.stdout?.once('data', (line: Buffer) => resolve(Number(line.toString().trim())))
    child.once('exit', (code) =>
      reject(new Error(`bench/relay-process.ts ended with ${code} before it listened`)),
    )
  })
}

/** Bits a second that arrive through a port. */
export async function throughput(port: number, streams: number, seconds: number): Promise<number> {
  const args = ['-c', '127.0.0.1', '-p', String(port), '-P', String(streams), '-t', String(seconds), '-J']
  const { stdout } = await run('iperf3', args, { timeout: seconds * 1000 + 10_000, maxBuffer: 1 << 24 })
  const result = JSON.parse(stdout) as { error?: string; end: { sum_received?: { bits_per_second: number } } }
  const received = result.end.sum_received
  if (!received) throw new Error(`iperf3 through port ${port}: ${result.error ?? 'no result'}`)
  return received.bits_per_second
}

export interface WebLoad {
  requestsPerSecond: number
  p99Ms: number
}

/** Small HTTP requests through a port: each over a connection of its own, or over kept ones. */
export async function webLoad(
  port: number,
  keepAlive: boolean,
  connections: number,
  seconds: number,
): Promise<WebLoad> {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency']
  if (!keepAlive) args.push('-H', 'Connection: close')
  const { stdout } = await run('wrk', [...args, `http://127.0.0.1:${port}/`], {
    timeout: seconds * 1000 + 10_000,
  })
  const rate = /Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]
  const p99 = /99%\s+([\d.]+)(us|ms|s)\b/.exec(stdout)
  if (rate === undefined || !p99) throw new Error(`wrk printed something unexpected: ${stdout.slice(0, 400)}`)
  const scale = { us: 0.001, ms: 1, s: 1000 }[p99[2] as 'us' | 'ms' | 's']
  return { requestsPerSecond: Number(rate), p99Ms: Number(p99[1]) * scale }
}
