import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exposition, gauge } from './exposition.ts'

/** The text format, as its specification says it: help, type, then samples. */
const LINE =
  /^(# HELP [a-z_]+ .+|# TYPE [a-z_]+ (counter|gauge)|[a-z_]+(\{[a-z_]+="([^"\\\n]|\\[\\n"])*"(,[a-z_]+="([^"\\\n]|\\[\\n"])*")*\})? (-?\d+(\.\d+)?(e[-+]?\d+)?|NaN|[-+]Inf))$/

test('every line is one of the text format, labels escaped', async () => {
  const odd = { one: 'a"b\\c\nd', two: '' }
  const exposition = new Exposition([
    gauge('first', 'Help with a \\ and\na line.', () => 1.5),
    gauge('second', 'Help.', () => [{ value: Number.POSITIVE_INFINITY, labels: odd }, { value: 1e-9 }]),
    gauge('none', 'Help.', () => []),
  ])
  const text = await exposition.metrics()
  assert.equal(text.at(-1), '\n')
  for (const line of text.slice(0, -1).split('\n')) assert.match(line, LINE)
  assert.ok(
    text.startsWith(
      [
        '# HELP first Help with a \\\\ and\\na line.',
        '# TYPE first gauge',
        'first 1.5',
        '# HELP second Help.',
        '# TYPE second gauge',
        'second{one="a\\"b\\\\c\\nd",two=""} +Inf',
        'second 1e-9',
        '# HELP none Help.',
        '# TYPE none gauge',
        '# HELP process_cpu_user_seconds_total',
      ].join('\n'),
    ),
    text,
  )
  assert.match(exposition.contentType, /^text\/plain; version=0\.0\.4/)
})

test('the process says of itself what its kernel says', async () => {
  const text = await new Exposition([]).metrics()
  const value = (name: string): number => {
    const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
    assert.ok(found !== undefined, `${name} is missing in ${text}`)
    return Number(found)
  }
  for (const name of [
    'process_resident_memory_bytes',
    'process_open_fds',
    'process_max_fds',
    'process_cpu_seconds_total',
    'nodejs_heap_size_used_bytes',
  ]) {
    assert.ok(value(name) > 0, name)
  }
  assert.ok(value('nodejs_heap_size_used_bytes') <= value('nodejs_heap_size_total_bytes'))
  assert.ok(value('nodejs_eventloop_lag_seconds') >= 0)
  assert.ok(Math.abs(value('process_start_time_seconds') - (Date.now() / 1000 - process.uptime())) < 2)
  assert.ok(text.includes(`nodejs_version_info{version="${process.version}"} 1\n`))
})
