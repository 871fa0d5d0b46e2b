import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { codeOf, messageOf, PosternError } from '../src/core/errors.ts'
import { buildPrograms } from './kubernetes/build.ts'
import { startControlPlane } from './kubernetes/control-plane.ts'
import { tools } from './kubernetes/kubectl.ts'
import { PROGRAMS } from './kubernetes/types.ts'

const help = `Starts a test bed on this machine, until SIGTERM or SIGINT.

Usage: npm run -s testbed -- kubernetes [--node] [--json]

  kubernetes   a Kubernetes control plane: etcd, API server, controller manager, scheduler.
               The first time they are built, about 12 minutes; later it starts in seconds
  --node       with a node: kubelet, containerd, service proxy, cluster DNS (needs root)
  --json       print one line of JSON with url, kubeconfig and more when it is ready
  --help       this text
`

interface Arguments {
  node: boolean
  json: boolean
}

function readArguments(args: string[]): Arguments | 'help' {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      node: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  if (positionals.length !== 1 || positionals[0] !== 'kubernetes') {
    throw new PosternError('BadArguments', 'name the test bed to start: kubernetes')
  }
  return { node: values.node, json: values.json }
}

async function run({ node, json }: Arguments): Promise<void> {
  const ended = new AbortController()
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.on(name, () => ended.abort(name))
  const say = (text: string) => (json ? undefined : console.log(text))
  const state = await mkdtemp(join(tmpdir(), 'ptk-'))
  await using undo = new AsyncDisposableStack()
  undo.defer(() => rm(state, { recursive: true, force: true }))
  try {
    if (node) await buildPrograms(PROGRAMS, ended.signal)
    const controlPlane = undo.use(
      await startControlPlane({ state, signal: ended.signal, onStep: (step) => say(`starting ${step}`) }),
    )
    const started = node ? await startNodeOf(controlPlane, say) : undefined
    if (started !== undefined) undo.defer(() => started.stop())
    const { access } = controlPlane
    const { kubectl, helm } = await tools()
    if (json) {
      console.log(JSON.stringify({ ...access, kubectl, helm, ...(started && { node: started.access }) }))
    }
    say(`\nThe API server is at ${access.url}, its logs and keys in ${state}. For a shell:\n`)
    say(`  export KUBECONFIG=${access.kubeconfig}`)
    say(`  alias kubectl=${kubectl} helm=${helm}`)
    say('\nEnd it with Ctrl-C.')
    await untilAborted(ended.signal)
    say('\nending it')
  } catch (error) {
    // Asked to end while it was still starting.
    if (!ended.signal.aborted) throw error
  }
}

/** Read only when it is asked for: a control plane alone needs nothing of it. */
async function startNodeOf(
  testbed: Parameters<typeof import('./kubernetes/node/node.ts').startNode>[0],
  say: (text: string) => void,
): Promise<{ access: unknown; stop(): Promise<void> }> {
  const { startNode } = await import('./kubernetes/node/node.ts')
  say('starting the node')
  const node = await startNode(testbed)
  const { name, containerdSocket, cgroup } = node
  return { access: { name, containerdSocket, cgroup }, stop: () => node.stop() }
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  // A signal handler alone does not keep a process alive.
  const alive = setInterval(() => {}, 2 ** 30)
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  clearInterval(alive)
}

try {
  const args = readArguments(process.argv.slice(2))
  if (args === 'help') process.stdout.write(help)
  else await run(args)
} catch (error) {
  const code = codeOf(error) ?? ''
  const misused = code === 'BadArguments' || code.startsWith('ERR_PARSE_ARGS')
  console.error(`testbed: ${messageOf(error)}${misused ? `\n\n${help}` : ''}`)
  process.exitCode = misused ? 2 : 1
}
