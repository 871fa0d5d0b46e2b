import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Pair {
  certFile: string
  keyFile: string
  cert: string
  key: string
}

/** A certificate authority of a test's own, in a folder; made with the `openssl` command. */
export class TestAuthority {
  readonly pair: Pair
  readonly #folder: string
  readonly #name: string

  constructor(folder: string, name: string) {
    this.#folder = folder
    this.#name = name
    const { keyFile, certFile } = this.#files(name)
    const base = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
    ]
    openssl([...base, '-subj', `/CN=${name}`, '-keyout', keyFile, '-out', certFile])
    this.pair = this.#read(name)
  }

  /** @param names as in subjectAltName: `IP:127.0.0.1,DNS:localhost` */
  issue(name: string, names = 'DNS:none'): Pair {
    const { keyFile, certFile } = this.#files(name)
    const requestFile = join(this.#folder, `${name}.csr`)
    const extensionFile = join(this.#folder, `${name}.ext`)
    writeFileSync(extensionFile, `subjectAltName=${names}\n`)
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', keyFile]
    openssl(['req', ...key, '-subj', `/CN=${name}`, '-out', requestFile])
    const authority = this.#files(this.#name)
    const signer = ['-CA', authority.certFile, '-CAkey', authority.keyFile, '-CAcreateserial']
    openssl([
      'x509',
      '-req',
      '-in',
      requestFile,
      ...signer,
      '-days',
      '2',
      '-extfile',
      extensionFile,
      '-out',
      certFile,
    ])
    return this.#read(name)
  }

  #files(name: string): Pick<Pair, 'certFile' | 'keyFile'> {
    return { certFile: join(this.#folder, `${name}.crt`), keyFile: join(this.#folder, `${name}.key`) }
  }

  #read(name: string): Pair {
    const files = this.#files(name)
    return { ...files, cert: readFileSync(files.certFile, 'utf8'), key: readFileSync(files.keyFile, 'utf8') }
  }
}

function openssl(args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 30_000 })
}
