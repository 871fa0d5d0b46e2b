import { nearest } from '../../core/nearest.ts'
import { describeRef, type Kind, type Ref, type Resource } from '../../core/resource.ts'
import { isObject, type Json, nameProblem, namespaceProblem } from './shape.ts'
import { type Position, readYaml, type YamlDocument, YamlProblem } from './yaml.ts'

/** What a validator finds: where in the document, and what must be. */
export interface Problem {
  path: (string | number)[]
  message: string
}

export interface ManifestKind {
  kind: Kind
  /** All that is wrong with a document of the kind; its metadata is checked already. */
  validate(document: unknown): Problem[]
}

export interface FolderProblem {
  /** Relative to the folder; empty for the folder itself. */
  file: string
  line?: number
  column?: number
  /** `Kind namespace/name`, when that much is known. */
  object?: string
  message: string
  /** All of it on one line: `web.yaml:7: OnionService default/web: spec.ports[0].virtualPort: must be …` */
  text: string
}

export interface ManifestDocument {
  ref: Ref
  position: Position
  /** As it is to be applied; undefined when it is invalid, and once it is applied. */
  object: Resource | undefined
  applied: boolean
}

export interface Manifest {
  documents: ManifestDocument[]
  problems: FolderProblem[]
  /** False when not all of its objects are known: what the file declared before stays. */
  complete: boolean
}

const MAX_DOCUMENTS = 5000
const MAX_LISTS = 4

/** Reads one manifest file. Never throws for what is in it. */
export function readManifest(text: string, file: string, kinds: readonly ManifestKind[]): Manifest {
  const manifest: Manifest = { documents: [], problems: [], complete: true }
  try {
    for (const document of readYaml(text)) {
      if (document.value === undefined) continue
      readObject(manifest, file, kinds, document, document.value, [])
      if (manifest.documents.length + manifest.problems.length > MAX_DOCUMENTS) {
        throw new YamlProblem(`has more than ${MAX_DOCUMENTS} documents: split it`)
      }
    }
    return manifest
  } catch (error) {
    if (!(error instanceof YamlProblem)) throw error
    const message = `${error.message}; nothing in this file is changed until it can be read`
    return { documents: [], problems: [folderProblem(file, message, error.position)], complete: false }
  }
}

export function folderProblem(
  file: string,
  message: string,
  position?: Position,
  object?: string,
): FolderProblem {
  const where = position === undefined ? file : `${file}:${position.line}`
  const text = [where, object, message].filter((part) => part !== undefined && part !== '').join(': ')
  return {
    file,
    ...(position === undefined ? {} : position),
    ...(object === undefined ? {} : { object }),
    message,
    text,
  }
}

/** `spec.ports[0].virtualPort`, `metadata.annotations["a.b/c"]`. */
export function showPath(path: readonly (string | number)[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`
      if (!/^[\w-]+$/.test(step)) return `[${JSON.stringify(step)}]`
      return index === 0 ? step : `.${step}`
    })
    .join('')
}

function readObject(
  manifest: Manifest,
  file: string,
  kinds: readonly ManifestKind[],
  source: YamlDocument,
  value: unknown,
  at: (string | number)[],
): void {
  const report = (problem: Problem, object?: string) => {
    const position = source.locate([...at, ...problem.path])
    const path = showPath(problem.path)
    const message = path === '' ? problem.message : `${path}: ${problem.message}`
    manifest.problems.push(folderProblem(file, message, position, object))
  }
  if (isObject(value) && value.kind === 'List' && Array.isArray(value.items) && at.length < 2 * MAX_LISTS) {
    for (const [index, item] of value.items.entries()) {
      readObject(manifest, file, kinds, source, item, [...at, 'items', index])
    }
    return
  }
  const known = identify(value, kinds)
  if ('path' in known) {
    report(known)
    manifest.complete = false
    return
  }
  const { ref, kind, document } = known
  const problems = metadataProblems(document, kind.kind)
  const object = { ...document, metadata: { ...(document.metadata as Json), ...namespaceOf(ref) } }
  const converted =
    kind.kind.apiVersion === 'v1' && kind.kind.kind === 'Secret' ? withData(object, problems) : object
  if (problems.length === 0) problems.push(...kind.validate(converted))
  for (const problem of problems) report(problem, describeRef(ref))
  manifest.documents.push({
    ref,
    position: source.locate(at),
    object: problems.length === 0 ? (converted as unknown as Resource) : undefined,
    applied: false,
  })
}

function namespaceOf(ref: Ref): { namespace?: string } {
  return ref.namespace === undefined ? {} : { namespace: ref.namespace }
}

/** Which object a document is about, or why that cannot be told. */
function identify(
  value: unknown,
  kinds: readonly ManifestKind[],
): Problem | { ref: Ref; kind: ManifestKind; document: Json } {
  if (!isObject(value)) return { path: [], message: 'must be an object with apiVersion, kind and metadata' }
  const { apiVersion, kind, metadata } = value
  for (const [field, text] of Object.entries({ apiVersion, kind })) {
    if (text === undefined || text === null || text === '') {
      return { path: [field], message: 'is missing: every document needs apiVersion, kind and metadata.name' }
    }
    if (typeof text !== 'string') return { path: [field], message: 'must be a string' }
  }
  const found = kinds.find((entry) => entry.kind.kind === kind && entry.kind.apiVersion === apiVersion)
  if (found === undefined) return unknownKind(apiVersion as string, kind as string, kinds)
  if (!isObject(metadata)) {
    return {
      path: ['metadata'],
      message: 'is missing: every document needs apiVersion, kind and metadata.name',
    }
  }
  const wrongName = nameProblem(metadata.name)
  if (wrongName !== undefined) return { path: ['metadata', 'name'], message: wrongName }
  const ref: Ref = { apiVersion: found.kind.apiVersion, kind: found.kind.kind, name: metadata.name as string }
  if (found.kind.namespaced) {
    const namespace = metadata.namespace ?? 'default'
    const wrong = namespaceProblem(namespace)
    if (wrong !== undefined) return { path: ['metadata', 'namespace'], message: wrong }
    ref.namespace = namespace as string
  }
  return { ref, kind: found, document: value }
}

function unknownKind(apiVersion: string, kind: string, kinds: readonly ManifestKind[]): Problem {
  const same = kinds.filter((entry) => entry.kind.kind === kind).map((entry) => entry.kind.apiVersion)
  if (same.length > 0) {
    const version = nearest(apiVersion, same) ?? same[0]!
    const message = `${shorten(apiVersion)} has no kind ${kind}: did you mean ${version}?`
    return { path: ['apiVersion'], message }
  }
  const name = nearest(
    kind,
    kinds.map((entry) => entry.kind.kind),
  )
  // Of several versions of the kind, the one that the document names, if it is there.
  const candidates = kinds.filter((entry) => entry.kind.kind === name)
  const meant = candidates.find((entry) => entry.kind.apiVersion === apiVersion) ?? candidates[0]
  const hint =
    meant === undefined
      ? `known are ${[...new Set(kinds.map((entry) => entry.kind.kind))].sort().join(', ')}`
      : `did you mean kind: ${meant.kind.kind} of apiVersion: ${meant.kind.apiVersion}?`
  return { path: ['kind'], message: `there is no kind ${shorten(kind)} in ${shorten(apiVersion)}: ${hint}` }
}

function metadataProblems(document: Json, kind: Kind): Problem[] {
  const metadata = document.metadata as Json
  const problems: Problem[] = []
  if (!kind.namespaced && metadata.namespace !== undefined) {
    problems.push({
      path: ['metadata', 'namespace'],
      message: `a ${kind.kind} is in no namespace: remove it`,
    })
  }
  for (const field of ['labels', 'annotations']) {
    const map = metadata[field]
    if (map === undefined || map === null) continue
    if (!isObject(map)) {
      problems.push({ path: ['metadata', field], message: 'must be an object of texts' })
      continue
    }
    for (const [key, text] of Object.entries(map)) {
      if (typeof text === 'string') continue
      problems.push({ path: ['metadata', field, key], message: 'must be a string: put it in quotes' })
    }
  }
  return problems
}

/** A Secret's `stringData` as `data`, as the API server does. */
function withData(object: Json, problems: Problem[]): Json {
  const { stringData, ...rest } = object
  if (stringData === undefined || stringData === null) return rest
  if (!isObject(stringData)) {
    problems.push({ path: ['stringData'], message: 'must be an object of texts' })
    return rest
  }
  const data: Json = isObject(rest.data) ? { ...rest.data } : {}
  for (const [key, text] of Object.entries(stringData)) {
    if (typeof text === 'string') data[key] = Buffer.from(text).toString('base64')
    else problems.push({ path: ['stringData', key], message: 'must be a string: put it in quotes' })
  }
  return { ...rest, data }
}

function shorten(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text
}
