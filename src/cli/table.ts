import type { Kind, Resource } from '../core/resource.ts'
import { age } from './age.ts'
import { columnsOf, hasName, type TableColumn } from './columns.ts'
import { valueAt } from './json-path.ts'
import { plain, printable, type Style } from './style.ts'

export interface TableOptions {
  /** Milliseconds since the epoch: what ages are counted to. */
  now: number
  wide?: boolean
  /** A column with the namespace in front. */
  withNamespace?: boolean
  style?: Style
}

/** Objects as `get` prints them: NAME, the kind's columns, ages as kubectl's. No line end at the end. */
export function objectTable(kind: Kind, objects: readonly Resource[], options: TableOptions): string {
  const columns = columnsOf(kind).filter((column) => options.wide === true || (column.priority ?? 0) === 0)
  const namespaced = options.withNamespace === true && kind.namespaced
  const named = hasName(kind)
  const header = [
    ...(namespaced ? ['NAMESPACE'] : []),
    ...(named ? ['NAME'] : []),
    ...columns.map((column) => column.name),
  ]
  const rows = objects.map((object) => [
    ...(namespaced ? [object.metadata.namespace ?? ''] : []),
    ...(named ? [object.metadata.name] : []),
    ...columns.map((column) => cell(object, column, options.now)),
  ])
  return textTable(header, rows, options.style)
}

/** Columns as wide as their widest cell, three spaces apart, as kubectl sets them. */
export function textTable(header: string[], rows: string[][], style: Style = plain): string {
  const clean = rows.map((row) => row.map((text) => printable(text).replace(/\s+/g, ' ')))
  const widths = header.map((title, index) =>
    Math.max(3, title.length, ...clean.map((row) => row[index]?.length ?? 0)),
  )
  const line = (cells: string[], paint: (text: string) => string): string =>
    cells
      .map((text, index) =>
        index === cells.length - 1 ? paint(text) : paint(text) + ' '.repeat(widths[index]! + 3 - text.length),
      )
      .join('')
  return [
    line(header, (text) => style('bold', text)),
    ...clean.map((row) => line(row, (text) => toned(text, style))),
  ].join('\n')
}

function toned(text: string, style: Style): string {
  if (text === 'true' || text === 'True') return style('green', text)
  if (text === 'false' || text === 'False' || text === 'Unknown' || text === 'Warning') {
    return style('yellow', text)
  }
  return text
}

function cell(object: Resource, column: TableColumn, now: number): string {
  const value = 'value' in column ? column.value(object as never) : valueAt(object, column.jsonPath)
  if (column.type === 'date') return age(typeof value === 'string' ? value : undefined, now)
  if (value === undefined || value === null || value === '') return '<none>'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** By namespace, then name: the order of every list. */
export function byName(a: Resource, b: Resource): number {
  const left = `${a.metadata.namespace ?? ''}/${a.metadata.name}`
  const right = `${b.metadata.namespace ?? ''}/${b.metadata.name}`
  return left < right ? -1 : left > right ? 1 : 0
}
