import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

/** What Grafana expects of a dashboard that it imports. */

const FILE = join(import.meta.dirname, '../../deploy/components/prometheus/dashboard.json')

interface Place {
  x: number
  y: number
  w: number
  h: number
}

interface Panel {
  id: number
  type: string
  title: string
  gridPos: Place
  datasource?: { type: string; uid: string }
  targets?: { refId: string; expr: string; legendFormat: string; datasource: { uid: string } }[]
  transformations?: { id: string; options: { renameByName?: Record<string, string> } }[]
}

interface Dashboard {
  uid: string
  title: string
  schemaVersion: number
  templating: { list: { name: string; type: string; query: unknown; datasource?: { uid: string } }[] }
  panels: Panel[]
}

const text = readFileSync(FILE, 'utf8')
const dashboard = JSON.parse(text) as Dashboard
const panels = dashboard.panels.filter(({ type }) => type !== 'row')

test('the datasource is a variable, and nothing names another', () => {
  const [first, ...others] = dashboard.templating.list
  assert.deepEqual([first?.name, first?.type, first?.query], ['datasource', 'datasource', 'prometheus'])
  for (const { name, datasource } of others) assert.equal(datasource?.uid, '$datasource', name)
  for (const { title, datasource, targets = [] } of panels) {
    assert.equal(datasource?.uid, '$datasource', title)
    for (const target of targets) assert.equal(target.datasource.uid, '$datasource', title)
  }
})

test('every variable that is used is declared', () => {
  const declared = ['__rate_interval', '__all', ...dashboard.templating.list.map(({ name }) => name)]
  const used = [...text.matchAll(/\$([a-z_]\w*)/g)].map((match) => match[1]!)
  assert.deepEqual(
    used.filter((name) => !declared.includes(name)),
    [],
  )
  for (const { name } of dashboard.templating.list) assert.ok(used.includes(name), `${name} is used`)
})

test('panels have ids of their own, and lie beside each other', () => {
  const ids = dashboard.panels.map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length)
  const taken = new Map<string, string>()
  for (const { title, gridPos } of dashboard.panels) {
    const { x, y, w, h } = gridPos
    assert.ok(x >= 0 && w > 0 && x + w <= 24, `${title} is within 24 columns`)
    for (let column = x; column < x + w; column++) {
      for (let line = y; line < y + h; line++) {
        const cell = `${column}/${line}`
        assert.equal(taken.get(cell), undefined, `${title} lies over ${taken.get(cell)}`)
        taken.set(cell, title)
      }
    }
  }
})

test('every panel asks for something, and its table names the columns that it gets', () => {
  assert.deepEqual([...new Set(panels.map(({ type }) => type))].sort(), ['stat', 'table', 'timeseries'])
  for (const { type, title, targets = [], transformations = [] } of panels) {
    assert.ok(targets.length > 0, title)
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    if (type !== 'table') continue
    const renamed = transformations.flatMap(({ options }) => Object.keys(options.renameByName ?? {}))
    const single = targets.length === 1
    const values = targets.map(({ refId }) => (single ? 'Value' : `Value #${refId}`))
    assert.deepEqual(renamed, values, title)
  }
})

/** The words of the article on the tor-operator: its dashboard's panels. */
const PROMISED: readonly [string, RegExp][] = [
  ['stat', /^tor_agent_bootstrapped$/],
  ['stat', /^sum by \(namespace\) \(tor_agent_onions_published\)$/],
  ['stat', /^count by \(namespace\) \(tor_agent_bridge_state == 1\)$/],
  ['timeseries', /^tor_agent_bridge_state\{/],
  ['table', /\(tor_agent_bridge_state\{/],
  ['timeseries', /^tor_agent_target_reachable\{/],
  ['table', /\(tor_agent_target_reachable\{/],
]
test('the panels that were promised are there', () => {
  for (const [type, query] of PROMISED) {
    const found = panels.filter((panel) => panel.type === type && query.test(panel.targets![0]!.expr))
    assert.equal(found.length, 1, `${type} of ${query}`)
  }
})
