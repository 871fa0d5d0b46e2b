import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** Pages that say which test shows what: each of them is there, under its name. */

const ROOT = join(import.meta.dirname, '..')
const PAGES = ['docs/conformance-tor.md', 'docs/field-bugs.md']
const NAMED = /`([^`]+\.test\.ts)` › (.+)/

/** Quotes may be typographic in a page, and escaped in a source. */
const plain = (text: string): string => text.replace(/[\\'"`’]/g, '')

for (const page of PAGES) {
  test(`every test that ${page} names is there, and every row names one`, () => {
    const rows = readFileSync(join(ROOT, page), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('|') && !/^[| -]+$/.test(line))
    const problems: string[] = []
    let named = 0
    for (const row of rows) {
      const cell = row.split(' | ').at(-1)!.replace(/ *\|$/, '')
      if (cell.trim() === 'tests') continue
      for (const part of cell.split('<br>')) {
        const [, file, name] = NAMED.exec(part.trim()) ?? []
        if (file === undefined || name === undefined) problems.push(`no test: ${row.slice(0, 100)}`)
        else if (!existsSync(join(ROOT, file))) problems.push(`${file} is not there`)
        else if (!namesOf(file).some((one) => one === plain(name.trim()))) {
          problems.push(`${file} has no test '${name.trim()}'`)
        } else named++
      }
    }
    assert.deepEqual(problems, [])
    assert.ok(named > 20, `only ${named} tests are named`)
  })
}

/** Names of the tests of a file, as they stand there. */
function namesOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const found = text.matchAll(
    /\b(?:test|it|step)\(\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g,
  )
  return [...found].map(([, single, double, template]) => plain(single ?? double ?? template ?? ''))
}
