import { dirname, resolve } from 'node:path'
import { isMap } from './is-map.ts'
import { at, fail, flag, type Section, text } from './kubeconfig-section.ts'
import { readPem } from './pem.ts'
import type { ExecPlugin, Pem } from './settings.ts'

const API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
/** A cluster's extension of this name is meant for the plug-in. */
const EXTENSION = 'client.authentication.k8s.io/exec'

/**
 * Reads `users[].user.exec`.
 *
 * @throws PosternError `KubeconfigInvalid`
 */
export function execPlugin(user: Section, cluster: Section, server: string, ca: Pem | undefined): ExecPlugin {
  if (!isMap(user.value.exec)) throw fail(user, 'exec', 'must be a mapping')
  const exec: Section = { file: user.file, path: `${user.path}.exec`, value: user.value.exec }
  const apiVersion = text(exec, 'apiVersion')
  if (apiVersion === undefined || !API_VERSIONS.includes(apiVersion)) {
    throw fail(
      exec,
      'apiVersion',
      `must be ${API_VERSIONS.join(' or ')}: have the plug-in's tool write it anew`,
    )
  }
  const command = text(exec, 'command')
  if (command === undefined) throw fail(exec, 'command', "is not set: name the plug-in's program")
  const installHint = text(exec, 'installHint')
  return {
    where: at(exec),
    apiVersion,
    command: command.includes('/') ? resolve(dirname(exec.file), command) : command,
    args: argsOf(exec),
    env: envOf(exec),
    interactiveMode: modeOf(exec, apiVersion),
    ...(installHint === undefined ? {} : { installHint }),
    ...(flag(exec, 'provideClusterInfo') ? { cluster: clusterInfo(cluster, server, ca) } : {}),
  }
}

function argsOf(exec: Section): string[] {
  const args = exec.value.args ?? []
  if (Array.isArray(args) && args.every((arg) => typeof arg === 'string')) return args
  throw fail(exec, 'args', 'must be a list of strings: quote them')
}

function envOf(exec: Section): ExecPlugin['env'] {
  const env = exec.value.env ?? []
  if (!Array.isArray(env)) throw fail(exec, 'env', 'must be a list')
  return env.map((item: unknown, index) => {
    if (isMap(item) && typeof item.name === 'string' && typeof item.value === 'string' && item.name !== '') {
      return { name: item.name, value: item.value }
    }
    throw fail(exec, `env[${index}]`, 'must have a name and a value, both strings')
  })
}

function modeOf(exec: Section, apiVersion: string): ExecPlugin['interactiveMode'] {
  const mode = text(exec, 'interactiveMode')
  if (mode === 'Never' || mode === 'IfAvailable' || mode === 'Always') return mode
  if (mode === undefined && apiVersion.endsWith('/v1beta1')) return 'IfAvailable'
  throw fail(exec, 'interactiveMode', 'must be Never, IfAvailable or Always')
}

/** `spec.cluster` of an ExecCredential. */
function clusterInfo(cluster: Section, server: string, ca: Pem | undefined): Record<string, unknown> {
  const serverName = text(cluster, 'tls-server-name')
  const extensions = cluster.value.extensions ?? []
  if (!Array.isArray(extensions)) throw fail(cluster, 'extensions', 'must be a list')
  const own: unknown = extensions.find((item: unknown) => isMap(item) && item.name === EXTENSION)
  return {
    server,
    ...(serverName === undefined ? {} : { 'tls-server-name': serverName }),
    ...(flag(cluster, 'insecure-skip-tls-verify') ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca === undefined
      ? {}
      : { 'certificate-authority-data': Buffer.from(readPem(ca, 'CERTIFICATE')).toString('base64') }),
    ...(isMap(own) && own.extension !== undefined ? { config: own.extension } : {}),
  }
}
