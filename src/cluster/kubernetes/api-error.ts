import { codeOf } from '../../core/errors.ts'
import { ClusterError, type ClusterErrorCode } from '../errors.ts'
import { isMap } from './is-map.ts'

/** One fault of several, as `Status.details.causes` has it. */
export interface Cause {
  reason: string
  /** Path of the field at fault, if it is one field. */
  field?: string
  message?: string
}

interface Facts {
  /** HTTP status; 0 when there was no answer. */
  status: number
  reason: string
  /** Milliseconds */
  retryAfter?: number
  causes?: Cause[]
  cause?: unknown
}

/** Why a call to the API server failed. */
export class ApiError extends ClusterError {
  override readonly name: string = 'ApiError'
  /** HTTP status; 0 when there was no answer. */
  readonly status: number
  /**
   * The server's reason (`AlreadyExists`, `Expired`, …), or one of ours: `NoAnswer`, `TimedOut`, `NotJson`,
   * `AnswerTooLarge`, `AnswerInvalid`, `WatchTorn`, `WatchLineTooLong`, `WatchLineInvalid`, `CredentialsUnavailable`.
   */
  readonly reason: string
  /** Milliseconds that the server asks to wait. */
  readonly retryAfter: number | undefined
  readonly causes: Cause[]

  constructor(code: ClusterErrorCode, message: string, facts: Facts) {
    super(code, message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.status = facts.status
    this.reason = facts.reason
    this.retryAfter = facts.retryAfter
    this.causes = facts.causes ?? []
  }
}

/** A call, as far as its errors need it. */
export interface Subject {
  /** Begins each message: `GET Secret ns/name`. */
  what: string
  /** Set for what the server must not be quoted on: its validation repeats the values that it refuses. */
  secret?: boolean
  /** Set for a call on all objects of a kind, where 404 can only mean the kind itself. */
  collection?: boolean
}

/** What came back from a server. */
export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}

const MAX_MESSAGE = 1000
const MAX_CAUSES = 50
/** A server that asks for more is not believed. */
const MAX_RETRY_AFTER = 600_000

/** The error that an answer stands for: a refusal, or something that no API server says. */
export function answerError(subject: Subject, answer: Answer): ApiError {
  const wait = retryAfter(one(answer.headers['retry-after']))
  const document = isJson(answer) ? parsed(answer.body) : undefined
  if (isMap(document) && document.kind === 'Status' && answer.status >= 300) {
    return statusError(subject, document, answer.status, wait)
  }
  const type = one(answer.headers['content-type']) ?? 'no content type'
  const begin = printable(answer.body.subarray(0, 1024).toString('utf8')).slice(0, 100)
  const said = `the server answered ${answer.status} with ${printable(type).slice(0, 100)}, not as an API server does: '${begin}'`
  const facts = {
    status: answer.status,
    reason: 'NotJson',
    ...(wait === undefined ? {} : { retryAfter: wait }),
  }
  if (answer.status !== 404) {
    const message = `${subject.what}: ${said}: is it the API server, or something in between?`
    return new ApiError('Unavailable', message, facts)
  }
  // A server answers a path that it does not have with 404 in plain text. Of one object that must not read as "there
  // is no such object": whoever makes what is missing would make it anew.
  const message = `${subject.what}: ${said}: does it serve this kind, are the CustomResourceDefinitions installed?`
  return new ApiError(subject.collection === true ? 'NotFound' : 'Unavailable', message, facts)
}

/**
 * The error that a `Status` document stands for.
 *
 * @param status HTTP status; without it the document's own code
 * @param wait   milliseconds, from the header
 */
export function statusError(
  subject: Subject,
  document: Record<string, unknown>,
  status?: number,
  wait?: number,
): ApiError {
  const details = isMap(document.details) ? document.details : {}
  const number = status ?? (typeof document.code === 'number' ? document.code : 0)
  const reason = typeof document.reason === 'string' ? document.reason.slice(0, 100) : ''
  const code = codeFor(number, reason, causesOf(details.causes, true))
  const quiet = subject.secret === true && code === 'Invalid'
  const causes = causesOf(details.causes, quiet)
  const seconds = details.retryAfterSeconds
  const after = wait ?? (typeof seconds === 'number' ? retryAfter(String(seconds)) : undefined)
  const text = textOf(number, reason, document.message, causes, quiet)
  const hint =
    number === 404 && subject.collection === true ? ': is its CustomResourceDefinition installed?' : ''
  return new ApiError(code, `${subject.what}: ${text}${hint}`, {
    status: number,
    reason,
    causes,
    ...(after === undefined ? {} : { retryAfter: after }),
  })
}

/** A fault that the server did not report itself. */
export function localError(subject: Subject, reason: string, fault: string, cause?: unknown): ApiError {
  return new ApiError('Unavailable', `${subject.what}: ${fault}`, { status: 0, reason, cause })
}

/** No answer, or only a part of one. */
export function networkError(subject: Subject, server: string, source: string, error: unknown): ApiError {
  const code = codeOf(error) ?? (error instanceof Error ? error.name : 'unknown')
  const untrusted = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT|ERR_SSL_WRONG_VERSION)/.test(
    code,
  )
  const remedy = untrusted
    ? `its certificate is not what ${source} expects: check certificate-authority and tls-server-name`
    : 'check that the API server runs and can be reached from here'
  return localError(subject, 'NoAnswer', `no answer from ${server} (${code}): ${remedy}`, error)
}

function codeFor(status: number, reason: string, causes: Cause[]): ClusterErrorCode {
  if (status === 410 || reason === 'Expired' || reason === 'Gone') return 'Gone'
  if (status === 404) return 'NotFound'
  if (status === 409) return reason === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict'
  if (status === 403 && causes.some((cause) => cause.reason === 'NamespaceTerminating')) return 'Terminating'
  if (status === 401 || status === 403) return 'Forbidden'
  // An apply that names the UID of an object which was made anew since.
  if (status === 422 && causes.some((cause) => cause.field === 'metadata.uid')) return 'Conflict'
  if (status < 400 || status === 408 || status === 429 || status >= 500) return 'Unavailable'
  return 'Invalid'
}

function textOf(status: number, reason: string, message: unknown, causes: Cause[], quiet: boolean): string {
  if (status === 401) {
    return 'the server refused the token or certificate (401): log in anew, or renew what the kubeconfig or service account holds'
  }
  if (!quiet && typeof message === 'string' && message !== '') return printable(message).slice(0, MAX_MESSAGE)
  const fields = causes.map((cause) => (cause.field ? `${cause.field}: ${cause.reason}` : cause.reason))
  return printable([`${reason || 'refused'} (${status})`, ...fields].join('; ')).slice(0, MAX_MESSAGE)
}

function causesOf(list: unknown, quiet: boolean): Cause[] {
  if (!Array.isArray(list)) return []
  return list
    .slice(0, MAX_CAUSES)
    .filter(isMap)
    .map(({ reason, field, message }) => ({
      reason: typeof reason === 'string' ? reason : '',
      ...(typeof field === 'string' ? { field } : {}),
      ...(typeof message === 'string' && !quiet ? { message: printable(message).slice(0, MAX_MESSAGE) } : {}),
    }))
}

/** Milliseconds of a Retry-After in seconds; API servers send no dates. */
function retryAfter(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,9}$/.test(text)
    ? Math.min(Number(text) * 1000, MAX_RETRY_AFTER)
    : undefined
}

export function isJson({ headers }: Pick<Answer, 'headers'>): boolean {
  return /^application\/json\b/i.test(one(headers['content-type']) ?? '')
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ').trim()
}
