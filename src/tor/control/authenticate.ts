import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { codeOf, PosternError } from '../../core/errors.ts'
import type { ControlConnection } from './connection.ts'
import { ControlProtocolError } from './errors.ts'
import type { ControlMessage } from './parser.ts'
import { parseArguments } from './quote.ts'

const COOKIE_SIZE = 32
/** The keys of the two hashes (control-spec, section 3.24). */
const SERVER_TO_CONTROLLER = 'Tor safe cookie authentication server-to-controller hash'
const CONTROLLER_TO_SERVER = 'Tor safe cookie authentication controller-to-server hash'

export interface AuthenticateOptions {
  /** In place of the file that tor names; needed where tor sees another file system. */
  cookieFile?: string
  timeoutMs?: number
}

export interface ProtocolInfo {
  methods: string[]
  cookieFile?: string
  /** e.g. 0.4.9.11 */
  torVersion?: string
}

/**
 * Authenticates by SAFECOOKIE, which shows the cookie to nobody, or with nothing where tor asks for nothing. To
 * be called once a connection, as the first command. Throws `ControlCookieUnreadable`, `ControlCookieMismatch`
 * (the port does not know the cookie: another tor's, or rewritten by a restart), `ControlAuthUnsupported`, or
 * ControlError.
 */
export async function authenticate(
  connection: ControlConnection,
  { cookieFile, timeoutMs = 10_000 }: AuthenticateOptions = {},
): Promise<ProtocolInfo> {
  const info = protocolInfo(await connection.command('PROTOCOLINFO 1', { timeoutMs }))
  const path = cookieFile ?? info.cookieFile
  if (info.methods.includes('SAFECOOKIE') && path !== undefined) {
    const cookie = await readCookie(path)
    try {
      await safeCookie(connection, cookie, timeoutMs)
    } finally {
      cookie.fill(0)
    }
    return info
  }
  if (info.methods.includes('NULL')) {
    await connection.command('AUTHENTICATE', { timeoutMs })
    return info
  }
  const message = `tor offers only ${info.methods.join(', ') || 'nothing'} to authenticate by: set CookieAuthentication 1`
  throw new PosternError('ControlAuthUnsupported', message)
}

/** Reads the reply to PROTOCOLINFO (control-spec, section 3.21). Unknown lines are skipped, as it demands. */
export function protocolInfo(message: ControlMessage): ProtocolInfo {
  const info: ProtocolInfo = { methods: [] }
  for (const { text } of message.lines) {
    const { words, values } = parseArguments(text)
    if (words[0] === 'AUTH') {
      info.methods = values.get('METHODS')?.split(',') ?? []
      const file = values.get('COOKIEFILE')
      if (file !== undefined) info.cookieFile = file
    } else if (words[0] === 'VERSION') {
      const version = values.get('Tor')
      if (version !== undefined) info.torVersion = version
    }
  }
  return info
}

async function safeCookie(connection: ControlConnection, cookie: Buffer, timeoutMs: number): Promise<void> {
  const clientNonce = randomBytes(32)
  const challenge = `AUTHCHALLENGE SAFECOOKIE ${clientNonce.toString('hex')}`
  const reply = await connection.command(challenge, { timeoutMs })
  const { values } = parseArguments(reply.lines[0]?.text ?? '')
  const serverHash = hex(values.get('SERVERHASH'))
  const serverNonce = hex(values.get('SERVERNONCE'))
  const hash = (key: string): Buffer =>
    createHmac('sha256', key).update(cookie).update(clientNonce).update(serverNonce).digest()
  if (!timingSafeEqual(hash(SERVER_TO_CONTROLLER), serverHash)) {
    const message =
      'The control port does not know the cookie, so it is not the tor that wrote the file: check both paths, and read the file again if tor has just started'
    throw new PosternError('ControlCookieMismatch', message)
  }
  await connection.command(`AUTHENTICATE ${hash(CONTROLLER_TO_SERVER).toString('hex')}`, { timeoutMs })
}

function hex(text: string | undefined): Buffer {
  if (text === undefined || !/^[0-9A-Fa-f]{64}$/.test(text)) {
    throw new ControlProtocolError("tor's reply to AUTHCHALLENGE lacks a hash or a nonce of 32 bytes")
  }
  return Buffer.from(text, 'hex')
}

/** The path comes from the peer, so nothing but a file of exactly a cookie's size is read. */
async function readCookie(path: string): Promise<Buffer> {
  const buffer = Buffer.alloc(COOKIE_SIZE + 1)
  let size: number
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    size = (await file.read(buffer, 0, buffer.length, 0)).bytesRead
  } catch (cause) {
    const message = `tor's cookie file cannot be read (${codeOf(cause) ?? 'unknown'}): run as tor's user, or set CookieAuthFileGroupReadable 1 and mount it at the path that tor names`
    throw new PosternError('ControlCookieUnreadable', message, { cause })
  }
  if (size !== COOKIE_SIZE) {
    const message = `tor's cookie file does not have ${COOKIE_SIZE} bytes: check that the path is tor's control_auth_cookie`
    throw new PosternError('ControlCookieUnreadable', message)
  }
  return buffer.subarray(0, COOKIE_SIZE)
}
