import { type ExecCredential, runExecPlugin } from './exec-plugin.ts'
import { cleanToken, readNamedFile } from './pem.ts'
import type { ExecPlugin, User } from './settings.ts'

/** What a request is sent with; a certificate of the settings' own files is not here, but in `TlsSource`. */
export interface Credential {
  token?: string
  /** PEM */
  certificate?: { cert: string; key: string }
}

export interface Credentials {
  current(): Promise<Credential>
  /** After `refused` was answered with 401: the newest there is, which may be the same. */
  renew(refused: Credential): Promise<Credential>
}

/** Milliseconds after which a token file is read again. */
const TOKEN_LIFE = 60_000

/**
 * @param now milliseconds of a clock that only runs forward
 */
export function credentialsOf(user: User, now: () => number): Credentials {
  if (user.tokenFile !== undefined) return new TokenFile(user.tokenFile, now)
  if (user.exec !== undefined) return new Plugin(user.exec)
  const fixed: Credential = user.token === undefined ? {} : { token: user.token }
  return { current: async () => fixed, renew: async () => fixed }
}

class TokenFile implements Credentials {
  readonly #file: string
  readonly #now: () => number
  #credential: Credential | undefined
  #readAt = 0

  constructor(file: string, now: () => number) {
    this.#file = file
    this.#now = now
  }

  async current(): Promise<Credential> {
    if (this.#credential !== undefined && this.#now() - this.#readAt < TOKEN_LIFE) return this.#credential
    return this.#read()
  }

  async renew(refused: Credential): Promise<Credential> {
    return this.#credential === undefined || this.#credential === refused ? this.#read() : this.#credential
  }

  #read(): Credential {
    this.#readAt = this.#now()
    try {
      const token = cleanToken(readNamedFile(this.#file, 'token file'), this.#file)
      if (token !== this.#credential?.token) this.#credential = { token }
    } catch (error) {
      // In the middle of a rotation the last good one is the best there is.
      if (this.#credential === undefined) throw error
    }
    return this.#credential as Credential
  }
}

/** Runs the plug-in once for all who wait, and again when its credential has expired or was refused. */
class Plugin implements Credentials {
  readonly #plugin: ExecPlugin
  #credential: ExecCredential | undefined
  #running: Promise<ExecCredential> | undefined

  constructor(plugin: ExecPlugin) {
    this.#plugin = plugin
  }

  async current(): Promise<Credential> {
    const known = this.#credential
    return known !== undefined && (known.expires === undefined || Date.now() < known.expires)
      ? known
      : this.#run()
  }

  async renew(refused: Credential): Promise<Credential> {
    return this.#credential === undefined || this.#credential === refused ? this.#run() : this.#credential
  }

  async #run(): Promise<Credential> {
    this.#running ??= runExecPlugin(this.#plugin).finally(() => {
      this.#running = undefined
    })
    this.#credential = await this.#running
    return this.#credential
  }
}
