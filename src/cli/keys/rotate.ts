import { SOURCE_ANNOTATION } from '../../cluster/cluster.ts'
import { SECRET, type Secret } from '../../cluster/kinds.ts'
import { timestamp } from '../../core/conditions.ts'
import { PosternError } from '../../core/errors.ts'
import { ONION_SERVICE, type OnionService } from '../../tor/api/onion-service.ts'
import { readOnionKey, SECRET_KEY_FILE } from '../../tor/onion/files.ts'
import { generateOnionKey, type OnionKey } from '../../tor/onion/key.ts'
import { keyData } from '../../tor/operator/onion-keys.ts'
import { UsageError } from '../errors.ts'
import { toYaml } from '../output.ts'
import { keysOfOnions } from './onions.ts'
import { type Place, type PlaceOptions, withPlace } from './place.ts'

export interface RotateOptions extends PlaceOptions {
  namespace: string
  /** How long the address of now stays: `30d`, `12h`. */
  overlap: string
  /** A Secret with the new key, which is made otherwise. */
  key?: string
  /** Makes the key, and leaves the OnionService to whoever keeps its manifest. */
  print?: boolean
  dryRun?: boolean
}

const FORMER_LIMIT = 4
const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }
const LONGEST = 5 * 366 * 86_400_000

/**
 * Gives an OnionService a new address, and keeps the one of now for a time.
 *
 * @param say prints a line for a person; `print` what belongs into the manifest
 * @throws UsageError, PosternError `NotFound`, `KeyInvalid`
 */
export async function rotateKey(
  name: string,
  options: RotateOptions,
  { say, print }: { say(line: string): void; print(text: string): void },
): Promise<void> {
  const { namespace, dryRun = false } = options
  const now = Date.now()
  const until = timestamp(now + overlapOf(options.overlap))
  await withPlace(options, async (place) => {
    const [found] = await keysOfOnions(place, [name], namespace)
    const { onion, key } = found!
    if (key.key === undefined)
      throw new PosternError(
        'KeyInvalid',
        `${key.problem}: an address that is to stay for a while needs its key`,
      )
    const former = (onion.spec.formerKeys ?? []).filter((one) => Date.parse(one.until) > now)
    if (former.length >= FORMER_LIMIT)
      throw new UsageError(
        `OnionService ${name} has ${former.length} former keys, and ${FORMER_LIMIT} are possible: take one out of spec.formerKeys first`,
      )
    const next = await nextKey(place, onion, options, now)
    if (next.key.address === key.key.address)
      throw new UsageError(`Secret ${next.secret} holds the key that is in use: name another one`)
    if (next.made !== undefined && !dryRun) await place.create(SECRET, next.made)
    const spec = {
      privateKeySecret: { name: next.secret },
      formerKeys: [...former, { name: key.secret, until }],
    }
    const onlySaid = dryRun || options.print === true
    if (!onlySaid) await place.apply(ONION_SERVICE, changed(onion, spec))
    const did = dryRun ? ' (dry run)' : ''
    say(`new: ${next.key.address}.onion, key in secret/${next.secret}${did}`)
    say(`former: ${key.key.address}.onion, key in secret/${key.secret}, served until ${until}`)
    const source = onion.metadata.annotations?.[SOURCE_ANNOTATION]
    if (options.print === true) say('the OnionService is as it was: give its manifest this:')
    else if (source !== undefined) say(`it stands in ${source}: put this there too, or it is changed back:`)
    else say('wherever its manifest is kept, this belongs there too:')
    print(toYaml({ spec }).trimEnd())
  })
}

interface NextKey {
  secret: string
  key: OnionKey
  /** To be made. */
  made?: Secret
}

async function nextKey(
  place: Place,
  { metadata: { namespace = 'default', name } }: OnionService,
  options: RotateOptions,
  now: number,
): Promise<NextKey> {
  if (options.key !== undefined) {
    const there = await place.get(SECRET, namespace, options.key)
    const value = there?.data?.[SECRET_KEY_FILE]
    const read = readOnionKey({
      secretKey: value === undefined ? undefined : Buffer.from(value, 'base64'),
    })
    if (there === undefined)
      throw new PosternError(
        'NotFound',
        `Secret ${namespace}/${options.key} does not exist: create it with the new key`,
      )
    if (!read.ok) throw new PosternError('KeyInvalid', `Secret ${options.key}: ${read.message}`)
    return { secret: options.key, key: read.key }
  }
  const key = generateOnionKey()
  const secret = `${name.slice(0, 220)}-key-${timestamp(now).replace(/\D/g, '')}`
  const made: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace, name: secret },
    type: 'Opaque',
    data: keyData(key),
  }
  return { secret, key, made }
}

/** Only these fields, and only of this very object. */
function changed({ metadata }: OnionService, spec: object): OnionService {
  const { namespace, name, uid } = metadata
  return {
    apiVersion: ONION_SERVICE.apiVersion,
    kind: ONION_SERVICE.kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    },
    spec,
  } as OnionService
}

/** @returns milliseconds. @throws UsageError */
export function overlapOf(text: string): number {
  const match = /^(\d{1,5})([hdw])$/.exec(text)
  const length = Number(match?.[1]) * UNITS[match?.[2] ?? '']!
  if (match === null || length === 0 || length > LONGEST)
    throw new UsageError(
      `--overlap ${JSON.stringify(text)} is no time such as 12h, 30d or 8w, of at most five years`,
    )
  return length
}
