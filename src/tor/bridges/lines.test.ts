import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalText, inOrder, LINES_LIMITS, parseLines } from './lines.ts'

const F = 'A'.repeat(40)
const CERT = `${'a+/9'.repeat(17)}Zz`
const GOOD = `obfs4 192.0.2.1:443 ${F} cert=${CERT} iat-mode=0`
const parse = (text: string, transports: readonly string[] = ['obfs4']): ReturnType<typeof parseLines> =>
  parseLines(text, transports)
const text = (from: string, transports?: readonly string[]): string =>
  canonicalText(parse(from, transports).lines)

const spellings: [name: string, line: string][] = [
  ['as it is', GOOD],
  ['as in a torrc', `Bridge ${GOOD}`],
  ['in other letters', `bridge OBFS4 192.0.2.1:443 ${F.toLowerCase()} cert=${CERT} iat-mode=0`],
  ['with a byte order mark, CRLF and room', `\uFEFF \t${GOOD.replaceAll(' ', ' \t ')}  \r\n`],
  ['with comments and blank lines', `# mine\n\n   # more\r\n${GOOD} # from a friend\n\n`],
  ['with arguments in another order', `obfs4 192.0.2.1:443 ${F} iat-mode=0 cert=${CERT}`],
  ['with zeros before the port', `obfs4 192.0.2.1:00443 ${F} cert=${CERT} iat-mode=0`],
  ['twice', `${GOOD}\n${GOOD}`],
]
for (const [name, line] of spellings) {
  test(`one bridge has one text: ${name}`, () => {
    assert.deepEqual(parse(line), {
      lines: [{ line: GOOD, transport: 'obfs4', host: '192.0.2.1', port: 443, fingerprint: F }],
      refused: [],
      refusedCount: 0,
    })
    assert.equal(text(line), `${GOOD}\n`)
  })
}

test('IPv6 addresses are written in one way', () => {
  for (const host of ['2001:db8::1', '2001:0DB8:0:0:0:0:0:1', '2001:DB8::0:1']) {
    const { lines } = parse(GOOD.replace('192.0.2.1', `[${host}]`))
    assert.equal(lines[0]?.host, '2001:db8::1')
    assert.ok(lines[0]?.line.startsWith('obfs4 [2001:db8::1]:443 '))
  }
})

test('other transports have arguments of their own', () => {
  const lines = [
    `webtunnel [2001:db8::2]:443 ${F} url=https://example.org/secret ver=0.0.1`,
    `meek_lite 192.0.2.20:80 ${F} url=https://example.org front=example.net utls=none`,
    `snowflake 192.0.2.3:80 ${F} fingerprint=${F} ice=stun:a:1,stun:b:2 url=https://example.org/`,
  ]
  const transports = ['webtunnel', 'meek_lite', 'snowflake']
  assert.deepEqual(parse(lines.join('\n'), transports).refused, [])
  assert.equal(parse(lines.join('\n'), transports).lines.length, 3)
  assert.match(parse(`webtunnel 192.0.2.1:443 ${F}`, transports).refused[0]!.reason, /no url=/)
})

const bad: [name: string, line: string, reason: RegExp][] = [
  ['a host name', GOOD.replace('192.0.2.1', 'bridge.example.org'), /resolves no names/],
  ['numbers that are no address', GOOD.replace('192.0.2.1', '192.0.2.256'), /no IP address/],
  ['an octal address', GOOD.replace('192.0.2.1', '0300.0.2.1'), /no IP address/],
  ['IPv6 without brackets', GOOD.replace('192.0.2.1', '2001:db8::1'), /without brackets/],
  ['IPv6 with a zone', GOOD.replace('192.0.2.1', '[fe80::1%eth0]'), /no IP address/],
  ['IPv4 in brackets', GOOD.replace('192.0.2.1', '[192.0.2.1]'), /no IP address/],
  ['no port', GOOD.replace(':443', ''), /no address of the form/],
  ['port 0', GOOD.replace(':443', ':0'), /1 to 65535/],
  ['port 65536', GOOD.replace(':443', ':65536'), /1 to 65535/],
  ['no address at all', 'obfs4', /no address of the form/],
  ['anywhere', GOOD.replace('192.0.2.1', '0.0.0.0'), /no bridge can have/],
  ['everybody', GOOD.replace('192.0.2.1', '[ff02::1]'), /no bridge can have/],
  ['no fingerprint', GOOD.replace(` ${F}`, ''), /no fingerprint/],
  ['nothing behind the address', 'obfs4 192.0.2.1:443', /no fingerprint/],
  ['39 digits', GOOD.replace(F, F.slice(1)), /40 hexadecimal/],
  ['41 digits', GOOD.replace(F, `${F}A`), /40 hexadecimal/],
  ['a letter that is no digit', GOOD.replace(F, `G${F.slice(1)}`), /40 hexadecimal/],
  ['no transport', GOOD.replace('obfs4 ', ''), /no transport/],
  ['another transport', GOOD.replace('obfs4', 'webtunnel'), /transport webtunnel: this daemon uses obfs4/],
  ['an unknown transport', GOOD.replace('obfs4', 'hunter2'), /not begin with a transport that is known/],
  ['a name of every object', GOOD.replace('obfs4', 'constructor'), /not begin with a transport/],
  ['no cert', GOOD.replace(` cert=${CERT}`, ''), /no cert=/],
  ['half a cert', GOOD.replace(CERT, CERT.slice(20)), /70 characters/],
  ['a cert that HTML spoiled', GOOD.replace('+', '&#43;'), /70 characters/],
  ['no iat-mode', GOOD.replace(' iat-mode=0', ''), /no iat-mode=/],
  ['a wrong iat-mode', GOOD.replace('iat-mode=0', 'iat-mode=3'), /0, 1 or 2/],
  ['an argument twice', `${GOOD} cert=${CERT}`, /twice/],
  ['an argument without a value', `${GOOD} x=`, /key=value/],
  ['an argument without a key', `${GOOD} =x`, /key=value/],
  ['words', `${GOOD} and more`, /key=value/],
  ['a quote', `${GOOD} x="y"`, /quote/],
  ['another command', `${GOOD}\rSETCONF DisableNetwork=1`, /no bridge line has/],
  ['a NUL', `${GOOD}\0`, /no bridge line has/],
  ['a space of another kind', GOOD.replace(' ', '\u00A0'), /no bridge line has/],
  ['a line without end', `${GOOD} x=${'y'.repeat(LINES_LIMITS.length)}`, /more than 1024/],
  ['HTML', '<html><body>', /not begin with a transport/],
  ['an option of tor', 'ClientTransportPlugin obfs4 exec /bin/sh', /not begin with a transport/],
]
for (const [name, line, reason] of bad) {
  test(`a line with ${name} is refused, and drops no other`, () => {
    const other = GOOD.replace('192.0.2.1', '192.0.2.9')
    const { lines, refused, refusedCount } = parse(`${GOOD}\n${line}\n${other}`)
    assert.deepEqual(
      lines.map((one) => one.line),
      [GOOD, other],
    )
    assert.deepEqual([refused.map(({ number }) => number), refusedCount], [[2], 1])
    assert.match(refused[0]!.reason, reason)
    for (const secret of [
      CERT.slice(20, 40),
      '192.0.2',
      'example.org',
      F.slice(5),
      'hunter2',
      'SETCONF',
      '/bin',
    ]) {
      // The two examples of how an address looks are ours.
      const said = refused[0]!.reason.replace(/192\.0\.2\.1:443 or/, '')
      assert.ok(!said.includes(secret), said)
    }
  })
}

test('of the same bridge with two secrets one stays, whichever comes first', () => {
  const other = GOOD.replace('iat-mode=0', 'iat-mode=1')
  const [a, b] = [parse(`${GOOD}\n${other}`), parse(`${other}\n${GOOD}`)]
  assert.deepEqual(a.lines, b.lines)
  assert.deepEqual([a.refused[0]?.number, b.refused[0]?.number], [2, 1])
  assert.match(b.refused[0]!.reason, /line 2/)
})

test('one bridge with two addresses stays with both', () => {
  assert.equal(parse(`${GOOD}\n${GOOD.replace('192.0.2.1', '[2001:db8::1]')}`).lines.length, 2)
})

test('of 10,000 lines 200 are kept and all are counted; what follows is not read', () => {
  const many = Array.from({ length: 10_000 }, (_, n) =>
    GOOD.replace('192.0.2.1', `10.1.${n >> 8}.${n & 255}`).replace(F, n.toString(16).padStart(40, '0')),
  )
  const { lines, refused, refusedCount } = parse(many.join('\r\n'))
  assert.deepEqual([lines.length, refused.length, refusedCount], [200, 20, 9_800])
  assert.match(refused[0]!.reason, /200 bridges are the most/)
  // The agent reads at most so much, and tor takes at most so much in one command.
  assert.ok(LINES_LIMITS.kept * LINES_LIMITS.length < 1_000_000)

  const more = parse(`${'x\n'.repeat(10_000)}${GOOD}\n${GOOD}`)
  assert.deepEqual([more.lines, more.refusedCount], [[], 10_001])
  assert.ok(parse('#\n'.repeat(9_999) + GOOD).lines.length === 1)
})

const bridge = fc
  .record({
    host: fc.oneof(
      fc.ipV4(),
      fc.ipV6().map((one) => `[${one}]`),
    ),
    port: fc.integer({ min: 1, max: 65_535 }),
    fingerprint: fc.stringMatching(/^[0-9a-fA-F]{40}$/),
    mode: fc.constantFrom('0', '1', '2'),
    prefix: fc.constantFrom('', 'Bridge ', '  '),
  })
  .map(
    ({ host, port, fingerprint, mode, prefix }) =>
      `${prefix}obfs4 ${host}:${port} ${fingerprint} iat-mode=${mode} cert=${CERT}`,
  )

test('the order of lines is no difference, and the canonical text is its own', () => {
  fc.assert(
    fc.property(fc.array(bridge, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (lines, dice) => {
      const shuffled = lines
        .map((line) => ({ line, key: dice.next().value as number }))
        .sort((a, b) => a.key - b.key)
        .map(({ line }) => line)
      const once = text(lines.join('\n'))
      assert.equal(text(shuffled.join('\r\n')), once)
      assert.equal(text(once), once)
      const parsed = parse(once)
      assert.equal(parsed.refusedCount, 0)
      assert.deepEqual(inOrder(parsed.lines), parsed.lines)
    }),
  )
})

test('whatever the text: nothing is thrown, and a line that is kept can end no command', () => {
  const soup = fc.array(
    fc.oneof(bridge, fc.string({ unit: 'binary' }), fc.constantFrom('\r', '\0', '"', ' ', '=', '#')),
  )
  fc.assert(
    fc.property(soup, fc.constantFrom('\n', ' ', '\r\n', ''), (parts, glue) => {
      for (const { line, fingerprint } of parse(parts.join(glue)).lines) {
        assert.match(line, /^obfs4 [0-9a-f.:[\]]+ [0-9A-F]{40}( [A-Za-z0-9_.-]+=[!#-&(-[\]-_a-~]+){2,}$/)
        assert.ok(line.includes(fingerprint) && line.length <= LINES_LIMITS.length + 8)
      }
    }),
    { numRuns: 300 },
  )
})
