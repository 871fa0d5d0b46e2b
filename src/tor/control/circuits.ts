/** A circuit as tor lists it. */
export interface Circuit {
  /** As CLOSECIRCUIT takes it. */
  id: string
  state: string
  /** Empty where tor did not say it, as the next two. */
  purpose: string
  hsState: string
  /** Address of an onion, without `.onion`. */
  onion: string
  /** Relays as tor names them, `$FINGERPRINT~name`, in their order. */
  path: readonly string[]
}

const ID = /^[A-Za-z0-9]{1,16}$/
const RELAY = /^\$[0-9A-F]{40}/

/** Reads GETINFO circuit-status (control-spec, 4.1.1 and 3.9); what is no line of it is left out. */
export function readCircuits(status: string): Circuit[] {
  return status.split('\n').flatMap((line) => {
    const [id = '', state = '', ...rest] = line.trim().split(' ')
    if (!ID.test(id) || state === '') return []
    const word = (key: string): string =>
      rest.find((one) => one.startsWith(`${key}=`))?.slice(key.length + 1) ?? ''
    const relays = RELAY.test(rest[0] ?? '') ? rest[0]!.split(',') : []
    return [
      {
        id,
        state,
        purpose: word('PURPOSE'),
        hsState: word('HS_STATE'),
        onion: word('REND_QUERY'),
        path: relays,
      },
    ]
  })
}

/** GETINFO circuit-status, read. */
export async function circuitsOf(control: {
  getInfo(...keys: string[]): Promise<Record<string, string>>
}): Promise<Circuit[]> {
  return readCircuits((await control.getInfo('circuit-status'))['circuit-status'] ?? '')
}
