import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { ConfigMap, Secret } from '../kinds.ts'
import { configError, fieldValue, type PodFacts } from './pod-fields.ts'
import { filesDigest, type VolumeFiles, writeVolume } from './pod-files.ts'
import { type FileSource, specOf, type Volume, type VolumeItem } from './pod-template.ts'

/** Where pods find the objects that they mount, by name in their own namespace. */
export interface ObjectSource {
  configMap(namespace: string, name: string): ConfigMap | undefined
  secret(namespace: string, name: string): Secret | undefined
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const SECRET_FILE = 0o600
const SECRET_FOLDER = 0o700
const PUBLIC_FOLDER = 0o755

/** The volumes of one pod, laid out under `<pod folder>/v/<volume name>`. */
export class PodVolumes {
  readonly #folder: string
  readonly #claims: string
  readonly #source: ObjectSource
  readonly #written = new Map<string, string>()

  /** @param claims the folder of the pod's namespace for claims, which outlive pods */
  constructor(folder: string, claims: string, source: ObjectSource) {
    this.#folder = folder
    this.#claims = claims
    this.#source = source
  }

  /**
   * Brings all volumes to what the objects say now. Synchronous on purpose: a change is in the files before the
   * next change is looked at.
   *
   * @throws PosternError CreateContainerConfigError when an object or key is missing; what was there stays
   */
  sync(facts: PodFacts): void {
    for (const volume of specOf(facts.pod).volumes ?? []) this.#syncOne(volume, facts)
  }

  /** Clears what lives in memory in a cluster and so does not survive a restart of the machine. */
  dropMemory(volumes: readonly Volume[]): void {
    for (const volume of volumes) {
      if (volume.emptyDir?.medium !== 'Memory' || !NAME.test(volume.name)) continue
      rmSync(join(this.#folder, 'v', volume.name), { recursive: true, force: true })
    }
  }

  /** The folder that stands for a volume. @throws PosternError CreateContainerConfigError for an unknown volume */
  path(name: string, volumes: readonly Volume[]): string {
    const volume = volumes.find((candidate) => candidate.name === name)
    if (volume === undefined) {
      throw configError(
        `volumeMounts names volume "${name}", which the pod does not have. Add it to volumes.`,
      )
    }
    if (volume.persistentVolumeClaim !== undefined) {
      return join(this.#claims, safeName(volume.persistentVolumeClaim.claimName, 'claimName'))
    }
    return join(this.#folder, 'v', safeName(volume.name, 'volume name'))
  }

  #syncOne(volume: Volume, facts: PodFacts): void {
    const path = this.path(volume.name, [volume])
    if (volume.emptyDir !== undefined || volume.persistentVolumeClaim !== undefined) {
      if (!existsSync(path)) mkdirSync(path, { recursive: true, mode: SECRET_FOLDER })
      return
    }
    const files = this.#filesOf(volume, facts)
    const digest = filesDigest(files)
    if (this.#written.get(volume.name) === digest) return
    const isPublic = volume.configMap !== undefined || volume.downwardAPI !== undefined
    writeVolume(path, files, isPublic ? PUBLIC_FOLDER : SECRET_FOLDER)
    this.#written.set(volume.name, digest)
  }

  #filesOf(volume: Volume, facts: PodFacts): VolumeFiles {
    const files: VolumeFiles = new Map()
    const namespace = facts.pod.metadata.namespace ?? ''
    if (volume.configMap !== undefined) this.#addConfigMap(files, volume.configMap, namespace)
    else if (volume.secret !== undefined) this.#addSecret(files, volume.secret, namespace)
    else if (volume.downwardAPI !== undefined) addFields(files, volume.downwardAPI.items, facts)
    else if (volume.projected !== undefined) {
      for (const source of volume.projected.sources ?? []) {
        if (source.configMap !== undefined) this.#addConfigMap(files, source.configMap, namespace)
        else if (source.secret !== undefined) this.#addSecret(files, source.secret, namespace)
        else if (source.downwardAPI !== undefined) addFields(files, source.downwardAPI.items, facts)
        else throw unsupported(volume.name, Object.keys(source))
      }
      for (const file of files.values()) file.mode = SECRET_FILE
    } else {
      throw unsupported(
        volume.name,
        Object.keys(volume).filter((key) => key !== 'name'),
      )
    }
    return files
  }

  #addConfigMap(files: VolumeFiles, source: FileSource, namespace: string): void {
    const name = source.name ?? ''
    const data = configMapData(this.#source.configMap(namespace, name))
    addItems(
      files,
      data,
      source,
      `ConfigMap ${namespace}/${name}`,
      (item) => item ?? source.defaultMode ?? 0o644,
    )
  }

  #addSecret(files: VolumeFiles, source: FileSource, namespace: string): void {
    const name = source.secretName ?? source.name ?? ''
    const data = secretData(this.#source.secret(namespace, name))
    addItems(files, data, source, `Secret ${namespace}/${name}`, () => SECRET_FILE)
  }
}

/** `ConfigMap name` and `Secret name` of all objects that a pod reads, by volume or by environment. */
export function referencesOf(facts: PodFacts): Set<string> {
  const found = new Set<string>()
  const { volumes = [], containers = [] } = specOf(facts.pod)
  for (const volume of volumes) {
    for (const source of [volume, ...(volume.projected?.sources ?? [])]) {
      if (source.configMap !== undefined) found.add(`ConfigMap ${source.configMap.name}`)
      if (source.secret !== undefined) found.add(`Secret ${source.secret.secretName ?? source.secret.name}`)
    }
  }
  for (const container of containers) {
    for (const { valueFrom } of container.env ?? []) {
      if (valueFrom?.configMapKeyRef !== undefined) found.add(`ConfigMap ${valueFrom.configMapKeyRef.name}`)
      if (valueFrom?.secretKeyRef !== undefined) found.add(`Secret ${valueFrom.secretKeyRef.name}`)
    }
    for (const source of container.envFrom ?? []) {
      if (source.configMapRef !== undefined) found.add(`ConfigMap ${source.configMapRef.name}`)
      if (source.secretRef !== undefined) found.add(`Secret ${source.secretRef.name}`)
    }
  }
  return found
}

export function configMapData(object: ConfigMap | undefined): Record<string, Buffer> | undefined {
  if (object === undefined) return undefined
  return { ...decode(object.data, 'utf8'), ...decode(object.binaryData, 'base64') }
}

export function secretData(object: Secret | undefined): Record<string, Buffer> | undefined {
  if (object === undefined) return undefined
  return { ...decode(object.data, 'base64'), ...decode(object.stringData, 'utf8') }
}

function decode(map: unknown, encoding: 'utf8' | 'base64'): Record<string, Buffer> {
  const entries = Object.entries((map ?? {}) as Record<string, unknown>)
  return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(String(value), encoding)]))
}

function addItems(
  files: VolumeFiles,
  data: Record<string, Buffer> | undefined,
  source: FileSource,
  what: string,
  modeOf: (item: number | undefined) => number,
): void {
  if (data === undefined) {
    if (source.optional === true) return
    throw configError(`${what} does not exist. Create it; the pod starts as soon as it is there.`)
  }
  const items = source.items ?? Object.keys(data).map((key): VolumeItem => ({ key, path: key }))
  for (const item of items) {
    const content = Object.hasOwn(data, item.key ?? '') ? data[item.key ?? ''] : undefined
    if (content !== undefined)
      files.set(safePath(item.path), { data: content, mode: modeOf(item.mode) & 0o777 })
    else if (source.optional !== true) throw configError(`${what} has no key "${item.key}". Add it.`)
  }
}

function addFields(files: VolumeFiles, items: readonly VolumeItem[] | undefined, facts: PodFacts): void {
  const [first] = specOf(facts.pod).containers
  for (const item of items ?? []) {
    files.set(safePath(item.path), { data: Buffer.from(fieldValue(item, facts, first)), mode: 0o644 })
  }
}

/** A path from a manifest, kept inside its volume. @throws PosternError CreateContainerConfigError */
export function safePath(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  // The writer keeps its own names under "..": the Kubernetes API refuses such paths as well.
  if (
    parts.length === 0 ||
    path.startsWith('/') ||
    path.includes('\0') ||
    parts.some((part) => part.startsWith('..'))
  ) {
    throw configError(`"${path}" is no path inside a volume. Use a relative path without "..".`)
  }
  return parts.join('/')
}

function safeName(name: string, what: string): string {
  if (!NAME.test(name)) throw configError(`"${name}" is no valid ${what}. Use a-z, 0-9, "-" and ".".`)
  return name
}

function unsupported(volume: string, kinds: string[]): Error {
  const kind = kinds.join(', ') || 'no source'
  return configError(
    `Volume "${volume}" uses ${kind}, which exists only in a cluster. Here: configMap, secret, projected, downwardAPI, emptyDir, persistentVolumeClaim.`,
  )
}
