import { KUBERNETES_KINDS } from '../cluster/kinds.ts'
import { nearest } from '../core/nearest.ts'
import type { Kind } from '../core/resource.ts'
import { TOR_KINDS } from '../tor/api/kinds.ts'
import { UsageError } from './errors.ts'

/** Every kind that an embedded cluster holds; ours first. */
export const KINDS: Kind[] = [...TOR_KINDS, ...KUBERNETES_KINDS]

/**
 * The kind that a word names: its plural, singular, kind or short name, in any case, with or without its group
 * (`onionservices.tor.fr0st.dev`).
 *
 * @throws UsageError with the nearest known word
 */
export function kindNamed(word: string, kinds: readonly Kind[] = KINDS): Kind {
  const [name = '', ...group] = word.toLowerCase().split('.')
  const found = kinds.find(
    (kind) => wordsOf(kind).includes(name) && (group.length === 0 || groupOf(kind) === group.join('.')),
  )
  if (found !== undefined) return found
  const near = nearest(name, kinds.flatMap(wordsOf))
  throw new UsageError(
    near === undefined
      ? `there is no kind '${word}'; there are ${kinds.map((kind) => kind.plural).join(', ')}`
      : `there is no kind '${word}'; did you mean '${near}'?`,
  )
}

function wordsOf(kind: Kind): string[] {
  return [kind.plural, kind.kind.toLowerCase(), ...(kind.shortNames ?? [])]
}

function groupOf(kind: Kind): string {
  return kind.apiVersion.includes('/') ? kind.apiVersion.split('/')[0]! : ''
}

/** KIND and NAME as a user gives them: `onion web` or `onion/web`. */
export function parseTarget(word: string, name: string | undefined): { kind: Kind; name?: string } {
  const slash = word.indexOf('/')
  if (slash < 0) return { kind: kindNamed(word), ...(name === undefined ? {} : { name }) }
  if (name !== undefined) throw new UsageError(`give either '${word}' or a kind and a name, not both`)
  return { kind: kindNamed(word.slice(0, slash)), name: word.slice(slash + 1) }
}
