import { type Kind, keyFor, type Resource } from '../../core/resource.ts'
import type { Preconditions } from '../cluster.ts'
import type { Api, Listing, Named, Page, Reading, WatchEvent, Watching, Writing } from './api.ts'
import { ApiError, localError, type Subject, statusError } from './api-error.ts'
import { apiPath, queryOf } from './api-path.ts'
import { isMap } from './is-map.ts'
import { LineSplitter } from './line-splitter.ts'
import type { Call, Transport } from './transport.ts'

/** An object is 1.5 MiB at most in etcd; this leaves room for managedFields and escapes. */
const MAX_LINE = 8 * 1024 * 1024
const MAX_PAGE = 256 * 1024 * 1024
/** Milliseconds that a watch may last longer than asked for. */
const WATCH_GRACE = 15_000

/** The API server's verbs, over HTTP. */
export class ApiClient implements Api {
  readonly #transport: Transport

  constructor(transport: Transport) {
    this.#transport = transport
  }

  async get<T extends Resource>(kind: Kind<T>, ref: Named, options: Reading = {}): Promise<T> {
    const call = reading(kind, 'GET', ref.namespace, ref.name, options)
    const { document } = await this.#transport.request(call)
    return objectOf<T>(call, kind, document)
  }

  async list<T extends Resource>(kind: Kind<T>, options: Listing = {}): Promise<Page<T>> {
    const { labelSelector, fieldSelector, limit, resourceVersion } = options
    const query = { labelSelector, fieldSelector, limit, continue: options.continue, resourceVersion }
    const call = { ...reading(kind, 'LIST', options.namespace, undefined, options, query), limit: MAX_PAGE }
    const { document } = await this.#transport.request(call)
    const metadata = isMap(document) && isMap(document.metadata) ? document.metadata : {}
    // The items of an empty list may be null.
    const items = isMap(document) ? (document.items ?? []) : undefined
    const version = metadata.resourceVersion
    if (!Array.isArray(items) || typeof version !== 'string') {
      throw localError(call, 'AnswerInvalid', 'the answer is no list: is it the API server?')
    }
    return {
      items: items.map((item: unknown) => objectOf<T>(call, kind, item)),
      resourceVersion: version,
      ...(typeof metadata.continue === 'string' && metadata.continue !== ''
        ? { continue: metadata.continue }
        : {}),
    }
  }

  async *watch<T extends Resource>(kind: Kind<T>, options: Watching): AsyncGenerator<WatchEvent<T>> {
    const { labelSelector, fieldSelector, resourceVersion, timeoutSeconds } = options
    const query = {
      watch: true,
      allowWatchBookmarks: true,
      labelSelector,
      fieldSelector,
      resourceVersion,
      timeoutSeconds,
    }
    const call = reading(kind, 'WATCH', options.namespace, undefined, options, query)
    const stream = await this.#transport.stream(call, timeoutSeconds * 1000 + WATCH_GRACE)
    const lines = new LineSplitter(MAX_LINE)
    try {
      options.opened?.()
      for await (const chunk of stream.chunks) {
        for (const line of lines.push(chunk)) if (line !== '') yield eventOf<T>(call, kind, line)
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      const fault = `the server sent a line of more than ${MAX_LINE / 1024 / 1024} MiB: find the object that is so large`
      throw localError(call, 'WatchLineTooLong', fault, error)
    } finally {
      stream.close()
    }
    if (lines.pending > 0) {
      throw localError(call, 'WatchTorn', 'the connection ended in the middle of an event')
    }
  }

  async create<T extends Resource>(kind: Kind<T>, object: T, options: Writing): Promise<T> {
    const { namespace } = object.metadata
    const path = apiPath(kind, required(kind, object)) + queryOf({ fieldManager: options.fieldManager })
    const call: Call = {
      ...subject(kind, 'CREATE', namespace, object.metadata.name),
      method: 'POST',
      path,
      body: { type: 'application/json', text: JSON.stringify(object) },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }
    const { document } = await this.#transport.request(call)
    return objectOf<T>(call, kind, document)
  }

  async apply<T extends Resource>(
    kind: Kind<T>,
    object: T,
    options: Writing & { subresource?: 'status' },
  ): Promise<{ object: T; created: boolean }> {
    const { namespace, name } = object.metadata
    const query = queryOf({ fieldManager: options.fieldManager, force: true })
    const call: Call = {
      ...subject(kind, options.subresource === 'status' ? 'APPLY status of' : 'APPLY', namespace, name),
      method: 'PATCH',
      path: apiPath(kind, namespace, name, options.subresource) + query,
      body: { type: 'application/apply-patch+yaml', text: JSON.stringify(object) },
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    }
    const { status, document } = await this.#transport.request(call)
    return { object: objectOf<T>(call, kind, document), created: status === 201 }
  }

  async remove(kind: Kind, ref: Named, preconditions?: Preconditions): Promise<void> {
    const options = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy: 'Background',
      ...(preconditions === undefined ? {} : { preconditions }),
    }
    const call: Call = {
      ...subject(kind, 'DELETE', ref.namespace, ref.name),
      method: 'DELETE',
      path: apiPath(kind, ref.namespace, ref.name),
      body: { type: 'application/json', text: JSON.stringify(options) },
    }
    try {
      await this.#transport.request(call)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'NotFound') throw error
    }
  }

  async version(): Promise<string> {
    const call: Call = { what: 'GET /version', method: 'GET', path: '/version' }
    const { document } = await this.#transport.request(call)
    const version = isMap(document) ? document.gitVersion : undefined
    if (typeof version === 'string' && /^v?\d[\w.+-]{0,60}$/.test(version)) return version
    throw localError(call, 'AnswerInvalid', 'the answer holds no gitVersion: is it the API server?')
  }

  async close(): Promise<void> {
    await this.#transport.close()
  }
}

function subject(kind: Kind, verb: string, namespace: string | undefined, name: string): Subject {
  return {
    what: `${verb} ${kind.kind} ${keyFor(kind.namespaced ? namespace : undefined, name)}`,
    ...(kind.kind === 'Secret' ? { secret: true } : {}),
  }
}

function reading(
  kind: Kind,
  verb: 'GET' | 'LIST' | 'WATCH',
  namespace: string | undefined,
  name: string | undefined,
  options: Reading,
  query: Record<string, string | number | boolean | undefined> = {},
): Call {
  const inNamespace = kind.namespaced && namespace ? ` in ${namespace}` : ''
  const partial = verb === 'LIST' ? 'PartialObjectMetadataList' : 'PartialObjectMetadata'
  return {
    ...(name === undefined
      ? { what: `${verb} ${kind.kind}${inNamespace}`, collection: true }
      : subject(kind, verb, namespace, name)),
    method: 'GET',
    path: apiPath(kind, namespace, name) + queryOf(query),
    ...(options.metadataOnly === true ? { accept: `application/json;as=${partial};g=meta.k8s.io;v=v1` } : {}),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  }
}

/** The namespace that an object is created in: the path has no name to make `apiPath` ask for it. */
function required(kind: Kind, object: Resource): string | undefined {
  const { namespace, name } = object.metadata
  if (kind.namespaced) apiPath(kind, namespace, name)
  return namespace
}

/**
 * An object as the rest knows it: with its own kind, which lists leave out and metadata-only answers replace. All else
 * stays as it came.
 */
function objectOf<T extends Resource>(call: Call, kind: Kind<T>, value: unknown): T {
  if (isMap(value) && isMap(value.metadata)) {
    value.apiVersion = kind.apiVersion
    value.kind = kind.kind
    return value as T
  }
  throw localError(call, 'AnswerInvalid', 'the answer holds what is no object: is it the API server?')
}

function eventOf<T extends Resource>(call: Call, kind: Kind<T>, line: string): WatchEvent<T> {
  let event: unknown
  try {
    event = JSON.parse(line)
  } catch {
    // Without the cause: it quotes the line.
    throw localError(
      call,
      'WatchLineInvalid',
      'the server sent a line that is no JSON: is it the API server?',
    )
  }
  if (isMap(event) && isMap(event.object)) {
    const { type, object } = event
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') {
      return { type, object: objectOf<T>(call, kind, object) }
    }
    if (type === 'ERROR') throw statusError(call, object)
    if (type === 'BOOKMARK' && isMap(object.metadata)) {
      const { resourceVersion } = object.metadata
      if (typeof resourceVersion === 'string') return { type, resourceVersion }
    }
  }
  throw localError(call, 'WatchLineInvalid', 'the server sent what is no watch event: is it the API server?')
}
