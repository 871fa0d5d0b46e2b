import { existsSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { LineCounter, parseDocument } from 'yaml'
import { PosternError } from '../../core/errors.ts'
import { isMap } from './is-map.ts'
import { execPlugin } from './kubeconfig-exec.ts'
import { at, fail, flag, type Section, text } from './kubeconfig-section.ts'
import { cleanToken, readNamedFile, readPem } from './pem.ts'
import type { ConnectionSettings, Pem, User } from './settings.ts'

/** The named lists of a kubeconfig, and below which member an entry keeps its body. */
const LISTS = { clusters: 'cluster', users: 'user', contexts: 'context' } as const

interface Kubeconfig {
  /** For messages. */
  files: string[]
  currentContext?: string
  clusters: Map<string, Section>
  users: Map<string, Section>
  contexts: Map<string, Section>
}

/**
 * The kubeconfig files to read, as kubectl finds them: an explicit path, else `KUBECONFIG`, else `~/.kube/config`.
 * Of `KUBECONFIG` only those that are there.
 *
 * @throws PosternError `KubeconfigNotFound`
 */
export function kubeconfigFiles(path: string | undefined, env: NodeJS.ProcessEnv, home: string): string[] {
  const listed = path === undefined ? (env.KUBECONFIG ?? '').split(delimiter).filter(Boolean) : [path]
  const files = (listed.length > 0 ? listed : [join(home, '.kube', 'config')]).map((file) => resolve(file))
  const found = files.filter((file) => existsSync(file))
  if (found.length > 0) return found
  const named = path === undefined && listed.length > 0 ? ' that KUBECONFIG names' : ''
  throw new PosternError(
    'KubeconfigNotFound',
    `no kubeconfig at ${files.join(' or ')}${named}: write one there, or name it with --kubeconfig or KUBECONFIG`,
  )
}

/**
 * Settings of a context.
 *
 * @param files   merged as kubectl does: the first that sets a value or names an entry wins
 * @param context name; without it the current one
 * @throws PosternError `KubeconfigInvalid` with file, field and remedy
 */
export function kubeconfigSettings(files: string[], context?: string): ConnectionSettings {
  const config = merge(files.map(read))
  const where = files.join(', ')
  const name = context ?? config.currentContext
  if (name === undefined) {
    const known = names(config.contexts)
    const message = `${where}: current-context is not set: run 'kubectl config use-context NAME', or choose with --context (${known})`
    throw new PosternError('KubeconfigInvalid', message)
  }
  const chosen = config.contexts.get(name)
  if (chosen === undefined) {
    const message = `${where}: contexts: there is no '${name}': choose one of ${names(config.contexts)}`
    throw new PosternError('KubeconfigInvalid', message)
  }
  const cluster = entry(config.clusters, chosen, 'cluster')
  if (cluster === undefined) throw fail(chosen, 'cluster', 'is not set: name one of clusters')
  const server = serverOf(cluster)
  // As kubectl: what is not encrypted gets no credentials.
  const plain = server.startsWith('http:')
  const user = plain ? undefined : entry(config.users, chosen, 'user')
  return {
    source: `${chosen.file}, context ${name}`,
    server,
    namespace: text(chosen, 'namespace') ?? 'default',
    tls: tlsOf(cluster),
    user: user === undefined ? {} : userOf(user, cluster, server),
  }
}

function read(file: string): Kubeconfig {
  const lines = new LineCounter()
  // The library's own messages quote the text, which may be a token.
  const document = parseDocument(readNamedFile(file, 'kubeconfig'), {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'silent',
  })
  const fault = document.errors[0]
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0])
    const message = `${file}:${line}:${col}: is not valid YAML (${fault.code}): correct that line`
    throw new PosternError('KubeconfigInvalid', message)
  }
  const top: Section = { file, path: '', value: {} }
  let value: unknown
  try {
    value = document.toJS()
  } catch (error) {
    const message = `${file}: its YAML aliases cannot be resolved: write the values out`
    throw new PosternError('KubeconfigInvalid', message, { cause: error })
  }
  if (value !== null && value !== undefined) {
    if (!isMap(value)) {
      throw new PosternError('KubeconfigInvalid', `${file}: is no kubeconfig: it must be a YAML mapping`)
    }
    top.value = value
  }
  const currentContext = text(top, 'current-context')
  return {
    files: [file],
    ...(currentContext === undefined ? {} : { currentContext }),
    clusters: entries(top, 'clusters'),
    users: entries(top, 'users'),
    contexts: entries(top, 'contexts'),
  }
}

function entries(top: Section, list: keyof typeof LISTS): Map<string, Section> {
  const found = new Map<string, Section>()
  const items = top.value[list] ?? []
  if (!Array.isArray(items)) throw fail(top, list, 'must be a list')
  for (const [index, item] of items.entries()) {
    if (!isMap(item)) throw fail(top, `${list}[${index}]`, 'must be a mapping with name')
    const name = text({ ...top, path: `${list}[${index}]`, value: item }, 'name')
    if (name === undefined) throw fail(top, `${list}[${index}].name`, 'is not set: name the entry')
    if (found.has(name)) throw fail(top, `${list}[${name}]`, 'is there twice: remove one')
    const member = LISTS[list]
    const value = item[member] ?? {}
    const section: Section = { file: top.file, path: `${list}[${name}].${member}`, value: {} }
    if (!isMap(value)) throw new PosternError('KubeconfigInvalid', `${at(section)}: must be a mapping`)
    found.set(name, { ...section, value })
  }
  return found
}

function merge(configs: Kubeconfig[]): Kubeconfig {
  const merged: Kubeconfig = { files: [], clusters: new Map(), users: new Map(), contexts: new Map() }
  for (const config of configs) {
    merged.files.push(...config.files)
    if (merged.currentContext === undefined && config.currentContext !== undefined) {
      merged.currentContext = config.currentContext
    }
    for (const list of ['clusters', 'users', 'contexts'] as const) {
      for (const [name, section] of config[list]) {
        if (!merged[list].has(name)) merged[list].set(name, section)
      }
    }
  }
  return merged
}

function entry(list: Map<string, Section>, from: Section, key: string): Section | undefined {
  const name = text(from, key)
  if (name === undefined) return undefined
  const found = list.get(name)
  if (found !== undefined) return found
  throw fail(from, key, `there is no '${name}' in ${key}s: choose one of ${names(list)}`)
}

function names(list: Map<string, Section>): string {
  return list.size === 0 ? 'none is declared' : [...list.keys()].slice(0, 20).join(', ')
}

function serverOf(cluster: Section): string {
  const server = text(cluster, 'server')
  if (server === undefined) throw fail(cluster, 'server', 'is not set: write the URL of the API server')
  const url = URL.parse(server)
  if (
    url === null ||
    !['http:', 'https:'].includes(url.protocol) ||
    url.username !== '' ||
    url.search !== ''
  ) {
    throw fail(cluster, 'server', 'must be a URL such as https://HOST:6443')
  }
  if (text(cluster, 'proxy-url') !== undefined) {
    throw fail(cluster, 'proxy-url', 'is not supported: use a context that reaches the server directly')
  }
  return server.replace(/\/+$/, '')
}

function tlsOf(cluster: Section): ConnectionSettings['tls'] {
  const ca = pem(cluster, 'certificate-authority', 'CERTIFICATE')
  const insecure = flag(cluster, 'insecure-skip-tls-verify')
  if (insecure && ca !== undefined) {
    const remedy = 'must not stand beside a certificate authority: remove it, so that the server is verified'
    throw fail(cluster, 'insecure-skip-tls-verify', remedy)
  }
  const serverName = text(cluster, 'tls-server-name')
  return {
    insecure,
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { serverName }),
  }
}

function userOf(user: Section, cluster: Section, server: string): User {
  for (const key of ['username', 'password']) {
    if (text(user, key) !== undefined) {
      throw fail(user, key, 'is not supported (nor by Kubernetes since 1.19): use a token or certificate')
    }
  }
  if (user.value['auth-provider'] !== undefined) {
    throw fail(user, 'auth-provider', "is not supported: use the provider's exec plug-in")
  }
  for (const key of ['as', 'as-uid', 'as-groups', 'as-user-extra']) {
    if (user.value[key] !== undefined) {
      throw fail(user, key, 'is not supported: choose a context with the credentials of that user')
    }
  }
  const certificate = pem(user, 'client-certificate', 'CERTIFICATE')
  const key = pem(user, 'client-key', 'PRIVATE KEY')
  if (certificate !== undefined && key === undefined)
    throw fail(user, 'client-key', 'is not set: name the key of client-certificate')
  if (certificate === undefined && key !== undefined)
    throw fail(user, 'client-certificate', 'is not set: name the certificate of client-key')
  return {
    ...(certificate === undefined || key === undefined ? {} : { certificate, key }),
    ...bearerOf(user, cluster, server),
  }
}

/** As kubectl: a token or its file comes before an exec plug-in, and the file, which may change, before the token. */
function bearerOf(
  user: Section,
  cluster: Section,
  server: string,
): Pick<User, 'token' | 'tokenFile' | 'exec'> {
  const tokenFile = text(user, 'tokenFile')
  if (tokenFile !== undefined) {
    const file = resolve(dirname(user.file), tokenFile)
    const where = `${at(user)}.tokenFile`
    cleanToken(readNamedFile(file, where), where)
    return { tokenFile: file }
  }
  const token = text(user, 'token')
  if (token !== undefined) return { token: cleanToken(token, `${at(user)}.token`) }
  return user.value.exec === undefined || user.value.exec === null
    ? {}
    : { exec: execPlugin(user, cluster, server, pem(cluster, 'certificate-authority', 'CERTIFICATE')) }
}

/** `KEY-data` (base64) or the file that `KEY` names; data wins, as in kubectl. */
function pem(section: Section, key: string, label: 'CERTIFICATE' | 'PRIVATE KEY'): Pem | undefined {
  const data = text(section, `${key}-data`)
  const file = text(section, key)
  let found: Pem
  if (data !== undefined) {
    const bytes = Buffer.from(data, 'base64')
    found = { where: `${at(section)}.${key}-data`, text: bytes.toString('utf8') }
  } else if (file !== undefined) {
    found = { where: `${at(section)}.${key}`, file: resolve(dirname(section.file), file) }
  } else return undefined
  readPem(found, label)
  return found
}
