import { readFileSync, statSync } from 'node:fs'
import { codeOf, PosternError } from '../../core/errors.ts'
import type { Pem } from './settings.ts'

const MAX_FILE = 1024 * 1024

/**
 * Text of a small file that settings name.
 *
 * @param where file and field that name it
 * @throws PosternError `KubeconfigInvalid`
 */
export function readNamedFile(file: string, where: string): string {
  try {
    if (statSync(file).size <= MAX_FILE) return readFileSync(file, 'utf8')
  } catch (error) {
    const fault = codeOf(error) === 'ENOENT' ? 'does not exist' : `cannot be read (${codeOf(error)})`
    throw new PosternError(
      'KubeconfigInvalid',
      `${where}: ${file} ${fault}: put the file there, or name another one`,
      { cause: error },
    )
  }
  throw new PosternError('KubeconfigInvalid', `${where}: ${file} is larger than 1 MiB: name another file`)
}

/**
 * @param label what must be in it: `CERTIFICATE`, or `PRIVATE KEY` with anything before it
 * @throws PosternError `KubeconfigInvalid`; its message never holds what was read
 */
export function readPem(pem: Pem, label: 'CERTIFICATE' | 'PRIVATE KEY'): string {
  const text = 'file' in pem ? readNamedFile(pem.file, pem.where) : pem.text
  if (new RegExp(`-----BEGIN ([A-Z0-9]+ )?${label}-----`).test(text)) return text
  const what = 'file' in pem ? `${pem.where}: ${pem.file}` : pem.where
  throw new PosternError('KubeconfigInvalid', `${what} holds no PEM block '${label}': write one there`)
}

/**
 * A bearer token as a file or field holds it, without the line end.
 *
 * @throws PosternError `KubeconfigInvalid`; its message never holds the token
 */
export function cleanToken(text: string, where: string): string {
  const token = text.trim()
  if (token === '')
    throw new PosternError('KubeconfigInvalid', `${where}: the token is empty: write one there`)
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new PosternError(
    'KubeconfigInvalid',
    `${where}: the token holds spaces or control characters: write the token alone`,
  )
}
