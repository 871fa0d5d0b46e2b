import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { join } from 'node:path'

/** Programs that carry a transport, the first one there is taken. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  obfs4: ['obfs4proxy', 'lyrebird'],
  meek_lite: ['lyrebird'],
  snowflake: ['lyrebird'],
  webtunnel: ['lyrebird'],
}

/**
 * The program that this image carries a transport with; undefined where it has none.
 *
 * @param folder where programs stand; default /usr/bin
 */
export async function transportProgram(transport: string, folder = '/usr/bin'): Promise<string | undefined> {
  for (const name of Object.hasOwn(PROGRAMS, transport) ? PROGRAMS[transport]! : []) {
    const path = join(folder, name)
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (usable) return path
  }
  return undefined
}

/** What to say where there is no program for a transport. */
export function transportMissing(transport: string): string {
  const names = Object.hasOwn(PROGRAMS, transport) ? PROGRAMS[transport]! : []
  const help =
    names.length === 0
      ? `choose one of ${Object.keys(PROGRAMS).join(', ')}`
      : `use an image with ${names.join(' or ')} in /usr/bin, or another transport`
  return `there is no program for the transport ${transport}: ${help}`
}
