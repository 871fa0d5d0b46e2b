import { spawn } from 'node:child_process'
import { codeOf, PosternError } from '../../core/errors.ts'
import { isMap } from './is-map.ts'
import type { ExecPlugin } from './settings.ts'

/** What a plug-in gave. */
export interface ExecCredential {
  token?: string
  /** PEM */
  certificate?: { cert: string; key: string }
  /** Milliseconds since 1970; without it the credential holds until it is refused. */
  expires?: number
}

export interface ExecLimits {
  /** Milliseconds for a plug-in that asks nobody. */
  timeout: number
  /** Milliseconds for one that may ask the person at the terminal, or open a browser. */
  interactiveTimeout: number
}

const LIMITS: ExecLimits = { timeout: 60_000, interactiveTimeout: 300_000 }
const MAX_OUTPUT = 1024 * 1024

/**
 * Runs a credential plug-in, without a shell. Its standard error is ours, as with kubectl: that is where it speaks to
 * the person. Its output is never part of an error.
 *
 * @throws PosternError `ExecPluginMissing`, `ExecPluginFailed`
 */
export async function runExecPlugin(
  plugin: ExecPlugin,
  limits: ExecLimits = LIMITS,
): Promise<ExecCredential> {
  const terminal = process.stdin.isTTY === true
  if (plugin.interactiveMode === 'Always' && !terminal) {
    throw failed(
      plugin,
      'needs a terminal (interactiveMode: Always): run it from one, or use another context',
    )
  }
  const interactive = terminal && plugin.interactiveMode !== 'Never'
  const info = {
    apiVersion: plugin.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive, ...(plugin.cluster === undefined ? {} : { cluster: plugin.cluster }) },
  }
  const timeout = interactive ? limits.interactiveTimeout : limits.timeout
  return parse(plugin, await run(plugin, JSON.stringify(info), interactive, timeout))
}

function run(plugin: ExecPlugin, info: string, interactive: boolean, timeout: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, KUBERNETES_EXEC_INFO: info }
    for (const { name, value } of plugin.env) Object.assign(env, { [name]: value })
    const child = spawn(plugin.command, plugin.args, {
      env,
      stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
    })
    const chunks: Buffer[] = []
    let size = 0
    const end = (error: PosternError): void => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      // What the plug-in started may hold the pipe open for ever.
      child.stdout.destroy()
      reject(error)
    }
    const timer = setTimeout(
      () =>
        end(failed(plugin, `printed no credentials within ${timeout / 1000} s: run it by hand to see why`)),
      timeout,
    )
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > MAX_OUTPUT) end(failed(plugin, 'printed more than 1 MiB: name a credential plug-in'))
      else chunks.push(chunk)
    })
    child.on('error', (error) => end(cannotStart(plugin, error)))
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'))
      else
        reject(
          failed(plugin, `ended with ${signal ?? `status ${code}`}: see what it printed, and log in anew`),
        )
    })
  })
}

function cannotStart(plugin: ExecPlugin, error: Error): PosternError {
  if (codeOf(error) !== 'ENOENT') {
    return failed(plugin, `cannot be started (${codeOf(error) ?? error.name}): make it executable`, error)
  }
  const hint = plugin.installHint === undefined ? '' : `\n${plugin.installHint.slice(0, 2000)}`
  return new PosternError(
    'ExecPluginMissing',
    `${plugin.where}.command: ${plugin.command} is not installed: install it, or use another context${hint}`,
    { cause: error },
  )
}

function failed(plugin: ExecPlugin, fault: string, cause?: unknown): PosternError {
  return new PosternError('ExecPluginFailed', `${plugin.where}.command: ${plugin.command} ${fault}`, {
    cause,
  })
}

function parse(plugin: ExecPlugin, output: string): ExecCredential {
  let document: unknown
  try {
    document = JSON.parse(output)
  } catch {
    // Without the cause: it quotes the output.
    throw failed(plugin, 'printed no JSON: name a credential plug-in')
  }
  if (!isMap(document) || document.kind !== 'ExecCredential' || document.apiVersion !== plugin.apiVersion) {
    throw failed(
      plugin,
      `printed no ExecCredential of ${plugin.apiVersion}: set the apiVersion that it speaks`,
    )
  }
  const status = isMap(document.status) ? document.status : {}
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: expires } = status
  const credential: ExecCredential = {}
  if (typeof token === 'string' && token !== '') {
    if (!/^[\x21-\x7e]+$/.test(token))
      throw failed(plugin, 'printed a token with spaces or control characters')
    credential.token = token
  }
  if (typeof cert === 'string' && typeof key === 'string' && cert !== '' && key !== '') {
    credential.certificate = { cert, key }
  } else if (cert || key) {
    throw failed(plugin, 'printed a client certificate without its key, or a key without its certificate')
  }
  if (credential.token === undefined && credential.certificate === undefined) {
    throw failed(plugin, 'printed neither a token nor a client certificate: run it by hand to see why')
  }
  if (expires !== undefined && expires !== null) {
    credential.expires = typeof expires === 'string' ? Date.parse(expires) : Number.NaN
    if (Number.isNaN(credential.expires))
      throw failed(plugin, 'printed an expirationTimestamp that is no time')
  }
  return credential
}
