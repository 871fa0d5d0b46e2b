import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { ALERTS, type Alert, RUNBOOKS } from '../scripts/generate/alerts.ts'
import { type AlertCase, CALM, CASES } from './monitoring/alert-cases.ts'
import { checkMetrics, prometheusMissing, promtool, Scratch } from './monitoring/promtool.ts'
import {
  agentExposition,
  operatorRegistry,
  panelQueries,
  seriesIn,
  served,
  shippedRules,
} from './monitoring/sources.ts'

/** Alerts with their pages, and the dashboard, by the tools of Prometheus where they are. */

const ROOT = join(import.meta.dirname, '..')
const SECTIONS = ['What it means', 'What users feel', 'What to check', 'What to do']

test('every series that a rule or a panel asks for is served', () => {
  const there = served()
  const unknown = (where: string, text: string): string[] =>
    seriesIn(text)
      .filter((name) => !there.has(name))
      .map((name) => `${where}: ${name}`)
  assert.deepEqual(
    [
      ...ALERTS.flatMap(({ name, expression }) => unknown(name, expression)),
      ...panelQueries().flatMap(({ panel, expression }) => unknown(panel, expression)),
    ],
    [],
  )
})

test('every alert has its page, and every page its alert', () => {
  const pages = readdirSync(join(ROOT, RUNBOOKS)).filter((name) => name !== 'README.md')
  assert.deepEqual(pages.sort(), ALERTS.map(({ name }) => `${name}.md`).sort())
  const rules = shippedRules().groups.flatMap(({ rules }) => rules)
  assert.deepEqual(
    rules.map(({ alert, annotations }) => [alert, annotations.runbook_url]),
    ALERTS.map(({ name }) => [name, `${RUNBOOKS}/${name}.md`]),
  )
})

for (const { name } of ALERTS) {
  test(`the page of ${name} says what to do`, () => {
    const file = join(ROOT, RUNBOOKS, `${name}.md`)
    const text = readFileSync(file, 'utf8')
    assert.equal(text.split('\n')[0], `# ${name}`)
    const sections = text.split(/^## /m).slice(1)
    assert.deepEqual(
      sections.map((section) => section.split('\n')[0]),
      SECTIONS,
    )
    for (const section of sections) {
      assert.ok(section.split('\n').slice(1).join('').length > 40, `${section.split('\n')[0]} is empty`)
    }
    assert.match(sections[2]!, /^```sh\n(.+\n)+```$/m, 'commands to check with')
    for (const [, target] of text.matchAll(/\]\(([^)#]+)[^)]*\)/g)) {
      assert.ok(existsSync(join(dirname(file), target!)), `${target} is not there`)
    }
    const there = served()
    assert.deepEqual(
      seriesIn(text).filter((one) => !there.has(one)),
      [],
    )
  })
}

test('the page on monitoring names series that there are', () => {
  const there = served()
  const named = seriesIn(readFileSync(join(ROOT, 'docs/monitoring.md'), 'utf8'))
  assert.ok(named.length > 10)
  assert.deepEqual(
    named.filter((one) => !there.has(one)),
    [],
  )
})

test('every alert has a world in which it fires', () => {
  assert.deepEqual(Object.keys(CASES).sort(), ALERTS.map(({ name }) => name).sort())
})

/** A text of an alert, as Prometheus fills it in. */
function filled(text: string, labels: Record<string, string>): string {
  return text.replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, (_all, name: string) => labels[name] ?? '')
}

function minutes(time: string): number {
  const [, count, unit] = /^(\d+)([mh])$/.exec(time)!
  return Number(count) * (unit === 'h' ? 60 : 1)
}

/** One test of `promtool test rules`, for the alerts that are named. */
function unit(name: string, world: AlertCase, expected: Record<string, object[]>): object {
  return {
    name,
    interval: '1m',
    input_series: Object.entries(world.series).map(([series, values]) => ({ series, values })),
    alert_rule_test: Object.entries(expected).map(([alertname, exp_alerts]) => ({
      eval_time: `${world.at}m`,
      alertname,
      exp_alerts,
    })),
  }
}

function fired({ name, severity, summary, description }: Alert, labels: Record<string, string>): object {
  const exp_annotations = {
    summary: filled(summary, labels),
    description: filled(description, labels),
    runbook_url: `${RUNBOOKS}/${name}.md`,
  }
  for (const text of Object.values(exp_annotations))
    assert.doesNotMatch(text, /\{\{|\/ | {2}/, `${name}: ${text}`)
  return { exp_labels: { ...labels, severity }, exp_annotations }
}

function runUnits(...tests: object[]): void {
  using scratch = new Scratch()
  scratch.write('rules.json', shippedRules())
  const file = scratch.write('tests.json', { rule_files: ['rules.json'], evaluation_interval: '1m', tests })
  assert.match(promtool(['test', 'rules', file]), /SUCCESS/)
}

const skip = prometheusMissing()
describe('by promtool', skip === undefined ? {} : { skip }, () => {
  test('the rules are valid', () => {
    using scratch = new Scratch()
    const out = promtool(['check', 'rules', '--lint-fatal', scratch.write('rules.json', shippedRules())])
    assert.match(out, new RegExp(`SUCCESS: ${ALERTS.length} rules found`))
  })

  for (const alert of ALERTS) {
    const { name } = alert
    test(`${name} fires when it must, and not before`, () => {
      const { fires, quiet } = CASES[name]!
      const early = { ...fires, at: Math.max(0, minutes(alert.time) - 1) }
      runUnits(
        unit('early', early, { [name]: [] }),
        unit('fires', fires, { [name]: [fired(alert, fires.labels)] }),
        unit('quiet', quiet, { [name]: [] }),
      )
    })
  }

  for (const [name, world] of Object.entries(CALM)) {
    test(`nothing fires for ${name}`, () => {
      const others = ALERTS.filter(
        (alert) => name === 'no daemon at all' || alert.name !== 'PosternOperatorDown',
      )
      runUnits(unit('calm', world, Object.fromEntries(others.map((alert) => [alert.name, []]))))
    })
  }

  test('every query of the dashboard is one', () => {
    using scratch = new Scratch()
    const queries = panelQueries()
    const rules = queries.map(({ expression }, index) => ({
      record: `panel:query_${index}`,
      expr: expression,
    }))
    const file = scratch.write('queries.json', { groups: [{ name: 'dashboard', rules }] })
    assert.match(promtool(['check', 'rules', file]), new RegExp(`SUCCESS: ${queries.length} rules found`))
  })

  test("an agent's and an operator's metrics are as they should be", async () => {
    checkMetrics(await agentExposition().metrics())
    checkMetrics(await operatorRegistry().metrics())
    assert.throws(() => checkMetrics('# TYPE a counter\na 1\n'), /_total/)
  })
})
