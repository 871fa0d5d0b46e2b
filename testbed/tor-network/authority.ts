import { randomBytes } from 'node:crypto'
import { access, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PosternError } from '../../src/core/errors.ts'
import { runToEnd } from './process.ts'

/** What one directory authority needs before its first start. */
export interface AuthorityPlan {
  nickname: string
  /** Its DataDirectory. */
  folder: string
  /** Where it listens: an IPv4 address of this machine. */
  address: string
  orPort: number
  dirPort: number
}

/**
 * Makes an authority's keys and returns its `DirAuthority` line for everyone's torrc: the long-term v3 key and its
 * certificate by tor-gencert, the relay's RSA identity by tor itself. Both at once, they touch different files.
 */
export async function makeAuthority(
  plan: AuthorityPlan,
  torBinary: string,
  signal?: AbortSignal,
): Promise<string> {
  const keys = join(plan.folder, 'keys')
  await mkdir(keys, { recursive: true, mode: 0o700 })
  const certificate = join(keys, 'authority_certificate')
  const gencert = [
    await gencertBinary(torBinary),
    ...['--create-identity-key', '--passphrase-fd', '0', '-m', '12', '-a', `${plan.address}:${plan.dirPort}`],
    ...[
      '-i',
      join(keys, 'authority_identity_key'),
      '-s',
      join(keys, 'authority_signing_key'),
      '-c',
      certificate,
    ],
  ]
  // tor wants some authority to be named before it prints a fingerprint in a testing configuration.
  const list = [
    torBinary,
    ...['--defaults-torrc', '/dev/null', '-f', join(plan.folder, 'none'), '--ignore-missing-torrc'],
    ...['--hush', '--list-fingerprint'],
    ...['--orport', '1', '--datadirectory', plan.folder, '--nickname', plan.nickname],
    ...['--dirauthority', `x 127.0.0.1:1 ${'f'.repeat(40)}`],
  ]
  const [, listed] = await Promise.all([
    runToEnd(gencert, `${randomBytes(24).toString('hex')}\n`, signal),
    runToEnd(list, '', signal),
  ])
  const v3ident = /^fingerprint ([0-9A-F]{40})$/m.exec(await readFile(certificate, 'utf8'))?.[1]
  const fingerprint = /((?:[0-9A-F]{4} ?){10})\s*$/.exec(listed)?.[1]?.replaceAll(' ', '')
  if (v3ident === undefined || fingerprint === undefined) {
    const missing = v3ident === undefined ? 'tor-gencert' : 'tor --list-fingerprint'
    throw new PosternError(
      'TorNetworkKeys',
      `${missing} gave no fingerprint for ${plan.nickname}: is it tor 0.4.9?`,
    )
  }
  const { nickname, address, orPort, dirPort } = plan
  return `${nickname} orport=${orPort} no-v2 v3ident=${v3ident} ${address}:${dirPort} ${fingerprint}`
}

/** The tor-gencert beside a tor that was named by its path, else the one on PATH. */
async function gencertBinary(torBinary: string): Promise<string> {
  if (!torBinary.includes('/')) return 'tor-gencert'
  const beside = join(dirname(torBinary), 'tor-gencert')
  return access(beside).then(
    () => beside,
    () => 'tor-gencert',
  )
}
