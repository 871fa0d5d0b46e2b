import type { Condition } from '../core/conditions.ts'
import type { Resource } from '../core/resource.ts'
import { age } from './age.ts'
import { countOf, type EventLike, eventsAbout, lastSeen, noteOf } from './events.ts'
import { hideSecret, toYaml } from './output.ts'
import { plain, printable, type Style } from './style.ts'
import { textTable } from './table.ts'

export interface DescribeOptions {
  /** Milliseconds since the epoch: what ages are counted to. */
  now: number
  style?: Style
  /** Columns of the terminal; messages are wrapped to it. */
  width?: number
}

const LABEL_WIDTH = 14

/** One object for a person: metadata, what it asks for, how it stands with what to do next, and its events. */
export function describeObject(
  object: Resource,
  events: readonly EventLike[],
  { now, style = plain, width = 100 }: DescribeOptions,
): string {
  const { apiVersion, kind, metadata, status, ...body } = hideSecret(object)
  const { conditions = [], ...state } = (status ?? {}) as { conditions?: Condition[] }
  const lines = [
    field('Name', metadata.name),
    ...(metadata.namespace === undefined ? [] : [field('Namespace', metadata.namespace)]),
    field('Kind', `${kind} (${apiVersion})`),
    ...map('Labels', metadata.labels),
    ...map('Annotations', metadata.annotations),
    field('Age', age(metadata.creationTimestamp, now)),
    ...(metadata.ownerReferences ?? []).map((owner) => field('Owner', `${owner.kind}/${owner.name}`)),
    ...(metadata.deletionTimestamp === undefined
      ? []
      : [field('Deleted', `${age(metadata.deletionTimestamp, now)} ago, waits for ${waitsFor(object)}`)]),
  ]
  if (object.kind === 'Secret') lines.push(...secretSizes(object, style))
  else for (const [name, value] of Object.entries(body)) lines.push(...block(title(name), value, style))
  if (Object.keys(state).length > 0) lines.push(...block('Status', state, style))
  if (conditions.length > 0) {
    lines.push('', style('bold', 'Conditions'))
    for (const condition of conditions) lines.push(...conditionLines(condition, now, style, width))
  }
  lines.push('', style('bold', 'Events'), ...eventLines(eventsAbout(object, events), now, style))
  return lines.join('\n')
}

function field(name: string, value: string): string {
  return `${`${name}:`.padEnd(LABEL_WIDTH)}${printable(value)}`
}

function map(name: string, entries: Record<string, string> | undefined): string[] {
  return Object.entries(entries ?? {}).map(([key, value], index) => {
    const text = value.length > 120 ? `${value.slice(0, 119)}…` : value
    return `${(index === 0 ? `${name}:` : '').padEnd(LABEL_WIDTH)}${printable(`${key}=${text}`)}`
  })
}

function block(name: string, value: unknown, style: Style): string[] {
  if (typeof value !== 'object' || value === null) return [field(name, String(value))]
  const yaml = toYaml(value).trimEnd().split('\n')
  return ['', style('bold', name), ...yaml.map((line) => `  ${printable(line)}`)]
}

function secretSizes(secret: Resource, style: Style): string[] {
  const data = (secret.data ?? {}) as Record<string, string>
  const lines = Object.entries(data).map(
    ([name, value]) => `  ${printable(name)}: ${Buffer.from(value, 'base64').length} bytes`,
  )
  return [field('Type', String(secret.type ?? 'Opaque')), '', style('bold', 'Data'), ...lines]
}

function conditionLines(condition: Condition, now: number, style: Style, width: number): string[] {
  const good = condition.status === 'True'
  const mark = good
    ? style('green', '✓')
    : condition.status === 'False'
      ? style('red', '✗')
      : style('yellow', '?')
  const head = `  ${mark} ${style('bold', condition.type.padEnd(18))} ${condition.status.padEnd(8)} ${condition.reason}  ${age(condition.lastTransitionTime, now)}`
  if (condition.message === '') return [head]
  return [
    head,
    ...wrap(printable(condition.message).replace(/\s+/g, ' '), width - 6).map((line) => `      ${line}`),
  ]
}

function eventLines(events: EventLike[], now: number, style: Style): string[] {
  if (events.length === 0) return ['  none']
  const rows = events.map((event) => [
    event.type ?? '',
    event.reason ?? '',
    countOf(event) > 1 ? `${age(lastSeen(event), now)} (x${countOf(event)})` : age(lastSeen(event), now),
    noteOf(event),
  ])
  return textTable(['TYPE', 'REASON', 'AGE', 'MESSAGE'], rows, style)
    .split('\n')
    .map((line) => `  ${line}`)
}

function waitsFor(object: Resource): string {
  return object.metadata.finalizers?.join(', ') || 'nothing'
}

function title(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Breaks a text between words; a word that is longer than a line stays whole, so that it can be copied. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
