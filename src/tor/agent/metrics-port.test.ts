import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import { codeOf } from '../../core/errors.ts'
import { freePort, type PortSample, parseSample, type ScrapeOptions, scrape } from './metrics-port.ts'

const lines: [
  line: string,
  sample: [name: string, labels: Record<string, string>, value: number] | undefined,
][] = [
  ['tor_bug_reached_count 3', ['tor_bug_reached_count', {}, 3]],
  ['a{onion="abc",reason="replay"} 0', ['a', { onion: 'abc', reason: 'replay' }, 0]],
  ['a{} 1', ['a', {}, 1]],
  ['a{b="c",} 1.5e3', ['a', { b: 'c' }, 1500]],
  ['a{ b = "c" , d="" } -1 1700000000000\r', ['a', { b: 'c', d: '' }, -1]],
  ['a{b="q\\"u\\\\o\\nte \\x }"}\t2', ['a', { b: 'q"u\\o\nte \\x }' }, 2]],
  ['a{__proto__="x"} 1', ['a', { ['__proto__']: 'x' }, 1]],
  ['# HELP a b', undefined],
  ['', undefined],
  ['a', undefined],
  ['a{b="c"', undefined],
  ['a{b="c" d="e"} 1', undefined],
  ['a{b=c} 1', undefined],
  ['a{b="c\\"} 1', undefined],
  ['a NaN', undefined],
  ['a +Inf', undefined],
  ['a one', undefined],
  ['a 1 2 3', undefined],
  ['9a 1', undefined],
]
for (const [line, expected] of lines) {
  test(`reads ${JSON.stringify(line)}`, () => {
    const sample = parseSample(line)
    if (expected === undefined || sample === undefined) return assert.equal(sample, expected)
    assert.deepEqual(
      [sample.name, Object.entries(sample.labels), sample.value],
      [expected[0], Object.entries(expected[1]), expected[2]],
    )
  })
}

async function asked(answer: RequestListener, more: Partial<ScrapeOptions> = {}): Promise<PortSample[]> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const samples: PortSample[] = []
  try {
    await scrape({
      host: '127.0.0.1',
      port,
      names: new Set(['wanted']),
      onSample: (sample) => samples.push(sample),
      ...more,
    })
    return samples
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

const unusable = (text: RegExp) => (error: unknown) => {
  assert.equal(codeOf(error), 'TorMetricsUnusable')
  assert.match((error as Error).message, text)
  return true
}

test('lines are read however they are cut, and only those that are wanted', async () => {
  const text = 'wanted{onion="ä"} 1\nwanted_not 2\nother 3\n\nwanted 4\nnonsense {{\nwanted 5'
  const bytes = Buffer.from(text)
  const samples = await asked(async (_request, response) => {
    for (let at = 0; at < bytes.length; at += 3) {
      response.write(bytes.subarray(at, at + 3))
      await new Promise((done) => setImmediate(done))
    }
    response.end()
  })
  assert.deepEqual(
    samples.map(({ labels, value }) => [labels.onion, value]),
    [
      ['ä', 1],
      [undefined, 4],
      [undefined, 5],
    ],
  )
})

test('an answer that is none, too long, or too late is an error', async () => {
  await assert.rejects(
    asked((_request, response) => response.writeHead(404).end('no')),
    unusable(/status 404/),
  )
  await assert.rejects(
    asked((_request, response) => response.end('wanted 1\n'.repeat(1000)), { maxBytes: 5000 }),
    unusable(/more than 5000 bytes/),
  )
  await assert.rejects(
    asked((_request, response) => response.end(`wanted{a="${'x'.repeat(100_000)}"} 1\n`)),
    unusable(/a line of more than/),
  )
  await assert.rejects(
    asked((_request, response) => response.write('wanted 1\n'), { timeoutMs: 50 }),
    unusable(/no whole answer in 50 ms/),
  )
  await assert.rejects(
    asked((_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('wanted 1\n', () => response.destroy())
    }),
    unusable(/broke off/),
  )
})

test('nobody there, and somebody who speaks otherwise', async () => {
  const port = await freePort('127.0.0.1')
  const to = { host: '127.0.0.1', port, names: new Set<string>(), onSample: () => {} }
  await assert.rejects(scrape(to), unusable(/does not answer/))
  const server = createTcpServer((socket) => socket.on('error', () => {}).end('SSH-2.0-x\r\n')).listen(
    port,
    '127.0.0.1',
  )
  await once(server, 'listening')
  await assert.rejects(scrape(to), unusable(/does not answer/))
  server.close()
})
