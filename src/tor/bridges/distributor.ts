import { type Dispatcher, Pool } from 'undici'
import { codeOf, messageOf, PosternError } from '../../core/errors.ts'
import type { BridgeLine } from './lines.ts'
import type { FetchFailure } from './pacing.ts'
import { type ParsedPage, parsePage } from './page.ts'

export interface FetchOptions {
  /** Certificates to trust instead of the usual ones, PEM. */
  ca?: string
  /** Milliseconds for all of it, redirects included. */
  timeout?: number
  /** Bytes of a page. */
  limit?: number
  signal?: AbortSignal
}

export type FetchOutcome = { bridges: readonly BridgeLine[] } | { failure: FetchFailure }

const TIMEOUT = 30_000
const LIMIT = 1024 * 1024
const REDIRECTS = 3
const WAIT_LIMIT = 7 * 24 * 3_600_000

/** A failure on its way out; never leaves this file. */
class FetchError extends PosternError {
  readonly reached: boolean
  readonly wait: number | undefined

  constructor(
    reason: string,
    message: string,
    { reached = true, wait }: { reached?: boolean; wait?: number } = {},
  ) {
    super(reason, message)
    this.reached = reached
    this.wait = wait
  }
}

/**
 * Fetches bridges from a distributor's page. Whatever it answers, or does not, is a failure with a reason of its own, and
 * says nothing about the bridges that one has. Messages name the host, never the whole address, nor what was on the page.
 *
 * @param url https, without a user name
 * @param transports of which bridges are wanted, such as `obfs4`
 * @throws only the reason of the signal, after it fired
 */
export async function fetchBridges(
  url: string,
  transports: readonly string[],
  options: FetchOptions = {},
): Promise<FetchOutcome> {
  const { timeout = TIMEOUT, signal } = options
  const late = new FetchError(
    'FetchTimeout',
    `the distributor gave no whole answer within ${timeout / 1000} s: check that the operator may connect to it, or try another source`,
    { reached: false },
  )
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(late), timeout)
  const signals = signal === undefined ? [deadline.signal] : [deadline.signal, signal]
  try {
    const page = await fetchPage(addressOf(url), options, AbortSignal.any(signals))
    return { bridges: bridgesOf(parsePage(page, transports), transports) }
  } catch (error) {
    signal?.throwIfAborted()
    const { code, message, reached, wait } = deadline.signal.aborted ? late : failureOf(error)
    return { failure: { reason: code, message, reached, ...(wait === undefined ? {} : { wait }) } }
  } finally {
    clearTimeout(timer)
  }
}

function addressOf(text: string): URL {
  const url = URL.parse(text)
  if (url === null) {
    throw new FetchError('UrlInvalid', 'the address of the source is none: write https://host/path', {
      reached: false,
    })
  }
  if (url.protocol !== 'https:') {
    const message = `the address of the source begins with ${url.protocol}: only https is fetched, since whoever is on the way could give bridges of his own`
    throw new FetchError('NotHttps', message, { reached: false })
  }
  if (url.username !== '' || url.password !== '') {
    const message = 'the address of the source has a user name or a password in it: remove them'
    throw new FetchError('CredentialsInUrl', message, { reached: false })
  }
  return url
}

async function fetchPage(
  start: URL,
  { ca, limit = LIMIT }: FetchOptions,
  signal: AbortSignal,
): Promise<string> {
  const pool = new Pool(start.origin, {
    connections: 1,
    allowH2: false,
    // Our own deadline covers the whole of it.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: 0, ...(ca === undefined ? {} : { ca }) },
  })
  try {
    let url = start
    for (let hops = 0; ; hops++) {
      const answer = await pool.request({
        method: 'GET',
        path: `${url.pathname}${url.search}`,
        headers: {
          accept: 'text/html, text/plain;q=0.9',
          'accept-encoding': 'identity',
          'user-agent': 'postern',
        },
        signal,
      })
      // Ending a body that has not ended is an error to undici, and none to us.
      answer.body.on('error', () => {})
      const to = redirectOf(url, answer, hops)
      if (to === undefined) return await readPage(url, answer, limit)
      answer.body.destroy()
      url = to
    }
  } finally {
    await pool.destroy()
  }
}

/** undefined: it is the answer itself. */
function redirectOf(
  from: URL,
  { statusCode, headers }: Dispatcher.ResponseData,
  hops: number,
): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode)) return undefined
  const to = typeof headers.location === 'string' ? URL.parse(headers.location, from) : null
  const refuse = (what: string): never => {
    throw new FetchError(
      'RedirectRefused',
      `${from.host} ${what}: give the address of the page itself as the source`,
    )
  }
  if (to === null) return refuse('sends to another page without saying which')
  if (to.protocol !== 'https:') return refuse('sends to a page without https')
  if (to.username !== '' || to.password !== '')
    return refuse('sends to a page with a user name in its address')
  if (to.host !== from.host) return refuse('sends to another host')
  if (hops >= REDIRECTS) return refuse(`sends from page to page, more than ${REDIRECTS} times`)
  return to
}

async function readPage(
  url: URL,
  { statusCode, headers, body }: Dispatcher.ResponseData,
  limit: number,
): Promise<string> {
  if (statusCode !== 200) {
    body.destroy()
    const next =
      statusCode === 429 || statusCode === 503
        ? 'it is asked again later, and less often'
        : 'open the source in a browser, and correct its address'
    const wait = waitOf(headers['retry-after'])
    throw new FetchError(
      'HttpStatus',
      `${url.host} answers with status ${statusCode}: ${next}`,
      wait === undefined ? {} : { wait },
    )
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    body.destroy()
    throw new FetchError(
      'PageEncoded',
      `${url.host} compresses its page although it was asked not to: use another source`,
    )
  }
  const chunks: Buffer[] = []
  let size = 0
  // Leaving the loop ends the connection, so that what is too large is never transferred.
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) {
      const message = `the page of ${url.host} has more than ${limit} bytes: a page with bridges is smaller; correct the address of the source`
      throw new FetchError('PageTooLarge', message)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size).toString('utf8')
}

/** Retry-After, in seconds or as a date. */
function waitOf(value: string | string[] | undefined): number | undefined {
  if (typeof value !== 'string') return undefined
  const wait = /^[0-9]{1,9}$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return wait > 0 ? Math.min(Math.round(wait), WAIT_LIMIT) : undefined
}

function bridgesOf(page: ParsedPage, transports: readonly string[]): BridgeLine[] {
  if (page.lines.length > 0) return page.lines
  if (page.kind === 'captcha') {
    const message =
      'the distributor asks for a captcha: it was asked too often from this address; it is asked again later, and until then your seed has to do'
    throw new FetchError('CaptchaPage', message)
  }
  const wanted = transports.join(', ')
  const [refused] = page.refused
  const what =
    page.kind === 'empty'
      ? 'an empty page'
      : refused === undefined
        ? `a page without bridges of the transport ${wanted}`
        : `a page with ${page.refusedCount} bridges that cannot be used (the first ${refused.reason})`
  throw new FetchError(
    'NoBridges',
    `the distributor gives ${what}: open the source in a browser, and correct its address`,
  )
}

const CERTIFICATE =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|ERR_TLS_|ERR_SSL_|EPROTO$|INVALID_)/

function failureOf(error: unknown): FetchError {
  if (error instanceof FetchError) return error
  const code = codeOf(error) ?? ''
  const failure = (reason: string, message: string, reached = false): FetchError =>
    new FetchError(reason, message, { reached })
  if (/^(ENOTFOUND|EAI_)/.test(code)) {
    return failure(
      'NameNotResolved',
      `the name of the distributor has no address (${code}): check the address of the source, and the DNS that the operator uses`,
    )
  }
  if (code === 'ECONNREFUSED') {
    return failure('FetchRefused', 'the distributor refuses connections: check host and port of the source')
  }
  if (/^(EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|EACCES|EPERM)$/.test(code)) {
    return failure(
      'HostUnreachable',
      `there is no way to the distributor (${code}): check the network policies of the operator`,
    )
  }
  if (code === 'ETIMEDOUT' || code === 'UND_ERR_CONNECT_TIMEOUT') {
    return failure(
      'FetchTimeout',
      'the distributor does not answer: check that the operator may connect to it, or try another source',
    )
  }
  if (CERTIFICATE.test(code)) {
    return failure(
      'TlsFailed',
      `the distributor could not prove who it is (${code}): check the address of the source; somebody on the way may answer in its place`,
    )
  }
  if (/^(HPE_|UND_ERR_(HEADERS|RES|HTTP|INVALID|RESPONSE))/.test(code)) {
    return failure(
      'AnswerMalformed',
      `the distributor does not answer as HTTP servers do (${code}): check the address of the source`,
      true,
    )
  }
  if (/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(code)) {
    return failure(
      'ConnectionLost',
      'the distributor ended the connection before its answer was whole: it is tried again later',
    )
  }
  return failure(
    'FetchFailed',
    `the distributor could not be asked (${code === '' ? messageOf(error) : code}): it is tried again later`,
  )
}
