import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** Pages that name tests by file and name in the last column of their tables: each of them is there. */

const ROOT = join(import.meta.dirname, '..')
const PAGES = [...globSync('docs/conformance-*.md', { cwd: ROOT }).sort(), 'docs/field-bugs.md']

interface Row {
  line: number
  cells: string[]
}

/** Rows of the page's tables, without heads and the lines below them. */
function rowsOf(text: string): Row[] {
  const lines = text.split('\n')
  return lines.flatMap((line, index) => {
    const isHead = /^\|[\s:|-]+\|$/.test(lines[index + 1] ?? '')
    if (!line.startsWith('|') || isHead || /^\|[\s:|-]+\|$/.test(line)) return []
    const cells = line.split('|').slice(1, -1)
    return [{ line: index + 1, cells: cells.map((cell) => cell.trim()) }]
  })
}

/** Names in calls of `test`, `it`, `step` and `describe…`, as the source writes them. */
function namesIn(source: string): Set<string> {
  const call =
    /\b(?:test|it|step|describe\w*)\(\s*(?:[\w.]+,\s*)?(?:'((?:[^'\\\n]|\\.)*)'|"([^"\n]*)"|`([^`]*)`)/g
  return new Set(
    [...source.matchAll(call)].map(([, single, double, template]) => single ?? double ?? template ?? ''),
  )
}

/** What is wrong with a page, each fault with its line. */
function faultsOf(page: string, text: string): string[] {
  return rowsOf(text).flatMap(({ line, cells }) => {
    const at = `${page}:${line}`
    if (cells.length < 2) return [`${at}: one cell alone`]
    const shown = cells.at(-1)!
    const named = [...shown.matchAll(/`([^`]+)` › (?:``\s?(.+?)\s?``|`([^`]+)`)/g)].map(
      ([, file, ticked, plain]) => ({ file: file!, name: ticked ?? plain! }),
    )
    const links = [...shown.matchAll(/\]\(([^)#]+)/g)].map(([, target]) => target!)
    const faults = links
      .filter((target) => !existsSync(join(ROOT, 'docs', target)))
      .map((target) => `no ${target}`)
    if (named.length === 0 && !/_differs_/.test(shown)) faults.push('neither a test nor a reason')
    if (named.length !== shown.split('›').length - 1) faults.push('not in the form `file` › `name`')
    for (const { file, name } of named) {
      if (!existsSync(join(ROOT, file))) faults.push(`no ${file}`)
      else if (!namesIn(readFileSync(join(ROOT, file), 'utf8')).has(name))
        faults.push(`no '${name}' in ${file}`)
    }
    return faults.map((fault) => `${at}: ${fault}`)
  })
}

test('there are pages, and tables in them', () => {
  assert.ok(PAGES.includes('docs/conformance-tor.md'), PAGES.join(', '))
  for (const page of PAGES) assert.ok(rowsOf(readFileSync(join(ROOT, page), 'utf8')).length > 0, page)
})

test('every row names tests that are there, or says why Postern differs', () => {
  assert.deepEqual(
    PAGES.flatMap((page) => faultsOf(page, readFileSync(join(ROOT, page), 'utf8'))),
    [],
  )
})

test('a page that names what is not there is told, with the line', () => {
  const own = 'test/conformance-docs.test.ts'
  const rows = [
    `| good | \`${own}\` › \`there are pages, and tables in them\` |`,
    '| a file that is gone | `src/gone.test.ts` › `x` |',
    `| only in a comment | \`${own}\` › \`Rows of the page's tables\` |`,
    '| nothing | see above |',
    '| a form of its own | `a.test.ts` › x |',
    '| a page that is gone | _differs_: [0](decisions/0000-gone.md) |',
    '| one |',
  ]
  assert.deepEqual(faultsOf('p', ['| says | test |', '| --- | --- |', ...rows].join('\n')), [
    'p:4: no src/gone.test.ts',
    `p:5: no 'Rows of the page's tables' in ${own}`,
    'p:6: neither a test nor a reason',
    'p:7: neither a test nor a reason',
    'p:7: not in the form `file` › `name`',
    'p:8: no decisions/0000-gone.md',
    'p:9: one cell alone',
  ])
})
