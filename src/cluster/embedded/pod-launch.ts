import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { PosternError } from '../../core/errors.ts'
import { configError, fieldValue, type PodFacts } from './pod-fields.ts'
import { type Container, type EnvVar, specOf } from './pod-template.ts'
import { configMapData, type ObjectSource, type PodVolumes, safePath, secretData } from './pod-volumes.ts'

/** What is started for a container. */
export interface Launch {
  argv: string[]
  env: Record<string, string>
  cwd: string
}

export interface LaunchContext {
  facts: PodFacts
  folder: string
  volumes: PodVolumes
  source: ObjectSource
  /** First word of a container's command → the real argv prefix. */
  programs: Readonly<Record<string, readonly string[]>>
  /** What every pod's environment begins with. */
  env: Readonly<Record<string, string>>
}

/** The reason for a program that this machine does not have: in a cluster it would come with the image. */
export const NO_PROGRAM = 'ErrImagePull'

/**
 * Argv, environment and folder of a container, with mount paths replaced by the folders of its volumes.
 *
 * @throws PosternError CreateContainerConfigError or ErrImagePull, which say what to do
 */
export function launchOf(container: Container, context: LaunchContext): Launch {
  const mounts = mountsOf(container, context)
  const toHost = mountReplacer(mounts)
  const env = environment(container, context, toHost)
  const words = [...(container.command ?? []), ...(container.args ?? [])]
  const [first, ...rest] = words.map((word, index) =>
    index === 0 && Object.hasOwn(context.programs, word) ? word : expand(toHost(String(word)), env),
  )
  const program = container.command?.length ? first : undefined
  const temporary = mounts.get('/tmp')
  return {
    argv: [...resolveProgram(program, container, context), ...rest],
    env: {
      ...context.env,
      HOME: context.folder,
      ...(temporary === undefined ? {} : { TMPDIR: temporary }),
      HOSTNAME: context.facts.pod.metadata.name,
      ...env,
    },
    cwd: workingFolder(container, mounts, context.folder),
  }
}

function mountsOf(container: Container, { volumes, facts }: LaunchContext): Map<string, string> {
  const mounts = new Map<string, string>()
  const all = specOf(facts.pod).volumes ?? []
  for (const mount of container.volumeMounts ?? []) {
    const path = `/${mount.mountPath.split('/').filter(Boolean).join('/')}`
    if (path === '/') throw configError(`mountPath "${mount.mountPath}" is the root. Mount below it.`)
    const base = volumes.path(mount.name, all)
    const sub = mount.subPath === undefined || mount.subPath === '' ? undefined : safePath(mount.subPath)
    const volume = all.find(({ name }) => name === mount.name)
    const writable = volume?.emptyDir !== undefined || volume?.persistentVolumeClaim !== undefined
    if (sub !== undefined && writable) mkdirSync(join(base, sub), { recursive: true, mode: 0o700 })
    mounts.set(path, sub === undefined ? base : join(base, sub))
  }
  return mounts
}

/**
 * Replaces mount paths anywhere in a text (`--config=/etc/x/y`, `unix:/run/x`): the longest one that matches, and
 * only at a path boundary, so that a mount at `/data` leaves `/database` and `http://host/data` alone. Comes before
 * `$(NAME)` is expanded, or a folder of ours below a mounted `/tmp` would be replaced once more.
 */
export function mountReplacer(mounts: ReadonlyMap<string, string>): (text: string) => string {
  if (mounts.size === 0) return (text) => text
  const paths = [...mounts.keys()].sort((a, b) => b.length - a.length)
  const escaped = paths.map((path) => path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const pattern = new RegExp(`(?<![\\w./~)-])(?:${escaped.join('|')})(?![\\w.~-])`, 'g')
  return (text) => text.replace(pattern, (path) => mounts.get(path) ?? path)
}

function environment(
  container: Container,
  { facts, source }: LaunchContext,
  toHost: (text: string) => string,
): Record<string, string> {
  const env: Record<string, string> = {}
  const namespace = facts.pod.metadata.namespace ?? ''
  for (const from of container.envFrom ?? []) {
    const ref = from.configMapRef ?? from.secretRef
    const name = ref?.name ?? ''
    const data =
      from.configMapRef !== undefined
        ? configMapData(source.configMap(namespace, name))
        : secretData(source.secret(namespace, name))
    if (data === undefined && ref?.optional !== true) {
      throw missing(from.configMapRef === undefined ? 'Secret' : 'ConfigMap', namespace, name)
    }
    for (const [key, value] of Object.entries(data ?? {}))
      env[`${from.prefix ?? ''}${key}`] = value.toString()
  }
  for (const entry of container.env ?? []) {
    const value = envValue(entry, container, facts, source, namespace)
    if (value === undefined) continue
    if (value.includes('\0') || !/^[^=\0]+$/.test(entry.name)) {
      throw configError(
        `Environment variable "${entry.name}" holds what no process can be given. Use plain text.`,
      )
    }
    // Secrets are passed on untouched: what looks like a path in them is none of ours.
    env[entry.name] = entry.valueFrom === undefined ? expand(toHost(value), env) : value
  }
  return env
}

function envValue(
  { value, valueFrom }: EnvVar,
  container: Container,
  facts: PodFacts,
  source: ObjectSource,
  namespace: string,
): string | undefined {
  if (valueFrom === undefined) return String(value ?? '')
  const ref = valueFrom.configMapKeyRef ?? valueFrom.secretKeyRef
  if (ref === undefined) return fieldValue(valueFrom, facts, container)
  const name = ref.name ?? ''
  const isSecret = valueFrom.configMapKeyRef === undefined
  const data = isSecret
    ? secretData(source.secret(namespace, name))
    : configMapData(source.configMap(namespace, name))
  const kind = isSecret ? 'Secret' : 'ConfigMap'
  if (data !== undefined && Object.hasOwn(data, ref.key)) return data[ref.key]!.toString()
  if (ref.optional === true) return undefined
  if (data === undefined) throw missing(kind, namespace, name)
  throw configError(`${kind} ${namespace}/${name} has no key "${ref.key}". Add it.`)
}

/** `$(NAME)` by the variables that stand before; `$$(NAME)` is the escaped form (Kubernetes API, Container.args). */
function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$\$|\$\(([^()\s]+)\)/g, (whole, name: string | undefined) => {
    if (name === undefined) return '$'
    return Object.hasOwn(env, name) ? env[name]! : whole
  })
}

function workingFolder(container: Container, mounts: ReadonlyMap<string, string>, folder: string): string {
  const asked = container.workingDir
  if (asked === undefined) return folder
  const host = mountReplacer(mounts)(asked)
  return host === asked ? folder : host
}

function resolveProgram(
  first: string | undefined,
  container: Container,
  context: LaunchContext,
): readonly string[] {
  if (first === undefined) {
    throw noProgram(`Container "${container.name}" has no command, only image ${container.image ?? '(none)'}`)
  }
  if (Object.hasOwn(context.programs, first)) return context.programs[first]!
  const candidates = first.includes('/')
    ? [first]
    : (context.env.PATH ?? '')
        .split(delimiter)
        .filter(Boolean)
        .map((folder) => join(folder, first))
  const found = candidates.find(isExecutable)
  if (found !== undefined) return [found]
  throw noProgram(`Program "${first}" of container "${container.name}" is not on this machine`)
}

function noProgram(what: string): PosternError {
  return new PosternError(
    NO_PROGRAM,
    `${what}: it runs only in a cluster. Install the program here, or deploy to Kubernetes.`,
  )
}

function missing(kind: string, namespace: string, name: string): Error {
  return configError(
    `${kind} ${namespace}/${name} does not exist. Create it; the pod starts as soon as it is there.`,
  )
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
