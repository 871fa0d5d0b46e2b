import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parsePage } from './page.ts'

const CERT = `${'a+/9'.repeat(17)}Zz`
const lineOf = (n: number): string =>
  `obfs4 192.0.2.${n}:443 ${n.toString(16).toUpperCase().padStart(40, '0')} cert=${CERT} iat-mode=0`
const LINES = [1, 2, 3].map(lineOf)
const escaped = LINES.map((line) => line.replaceAll('+', '&#43;'))

const pages: [name: string, page: string][] = [
  ['plain text', LINES.join('\n')],
  ['plain text as in a torrc', LINES.map((line) => `Bridge ${line}\r\n`).join('')],
  [
    'a distributor, with breaks and entities',
    `<!DOCTYPE html><html><head><title>obfs4 bridges</title><style>a>b{}</style></head><body>
    <p>Here are your obfs4 bridges:</p><div class="bridge-lines" id="bridgelines">
    ${escaped.map((line) => `${line}<br />`).join('\n')}</div><a href="?transport=obfs4">More</a></body></html>`,
  ],
  ['all on one line', `<div id=bridgelines>${escaped.join('<br>')}</div>`],
  ['a preformatted block', `<pre>\n${LINES.join('\n')}\n</pre>`],
  ['a list', `<ul>${LINES.map((line) => `<li><code>${line}</code>`).join('')}</ul>`],
  [
    'a table',
    `<table>${LINES.map((line) => `<tr><td>${line.replaceAll(' ', '&nbsp;')}</td></tr>`).join('')}`,
  ],
  [
    'other entities',
    LINES.join('<BR>').replaceAll('+', '&#x2B;').replaceAll('/', '&sol;').replaceAll('=', '&equals;'),
  ],
  ['lines that wrap', `<div>${LINES.map((line) => line.replaceAll(' ', '\n  ')).join('<br>')}</div>`],
  ['places to break words', `<p>${LINES.map((line) => line.replace('a+', 'a<wbr>+')).join('<p>')}`],
  [
    'words around',
    `Use ${LINES[0]}, or ${LINES[1]} please <b>obfs4</b> or: ${LINES[2]} .`.replace('=0,', '=0 ,'),
  ],
  ['lists of strings', JSON.stringify({ bridges: LINES })],
]
for (const [name, page] of pages) {
  test(`bridges are found in ${name}`, () => {
    const { lines, kind, refusedCount } = parsePage(page, ['obfs4'])
    assert.deepEqual(
      lines.map(({ line }) => line),
      LINES,
    )
    assert.deepEqual([kind, refusedCount], ['bridges', 0])
  })
}

const none: [name: string, page: string, kind: string, refused?: number][] = [
  ['nothing', ' \n', 'empty'],
  [
    'a captcha',
    '<form id="captchaSubmission" method="POST"><img src="data:image/jpeg;base64,x"><input name="captcha_response_field"></form>',
    'captcha',
  ],
  ['an error', '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>', 'other'],
  [
    'no bridges any more',
    "<p>There currently aren't any bridges available...</p><p>obfs4 is a transport",
    'other',
  ],
  ['a comment', `<!-- ${LINES[0]} -->`, 'other'],
  ['a comment without end', `<!-- ${LINES[0]}`, 'other'],
  ['a script', `<script>x = '<br>${LINES[0]}'</script>`, 'other'],
  ['an attribute', `<a title="${LINES[0]}">x</a>`, 'other'],
  ['another transport', LINES[0]!.replace('obfs4', 'webtunnel'), 'other'],
  ['a host name', LINES[0]!.replace('192.0.2.1', 'example.org'), 'other', 1],
  ['a short fingerprint', LINES[0]!.replace('0000 ', ' ').replace(/0{8}/, ''), 'other', 1],
  ['escaped twice', `<p>${LINES[0]!.replaceAll('+', '&amp;#43;')}`, 'other', 1],
]
for (const [name, page, kind, refused = 0] of none) {
  test(`a page with ${name} holds no bridge`, () => {
    const parsed = parsePage(page, ['obfs4'])
    assert.deepEqual([parsed.lines, parsed.kind, parsed.refusedCount], [[], kind, refused])
  })
}

test('a bad bridge on a page drops no good one', () => {
  const page = `${LINES[0]}<br>${LINES[1]!.replace('192.0.2.2', 'example.org')}<br>${LINES[2]}`
  const { lines, refused } = parsePage(page, ['obfs4'])
  assert.deepEqual(
    lines.map(({ line }) => line),
    [LINES[0], LINES[2]],
  )
  assert.match(refused[0]!.reason, /resolves no names/)
})

test('a megabyte of any one piece is read to its end', () => {
  const pieces = [
    '<',
    '<!--',
    '<a',
    '<script>',
    '</',
    '&#',
    '&#43;',
    'obfs4 ',
    'obfs4 1:1 ',
    'İ<br>',
    'a=b ',
    `${LINES[0]} `,
  ]
  for (const piece of pieces) {
    const page = `${LINES[1]}<br>${piece.repeat(2 ** 20 / piece.length)}`
    assert.ok(
      parsePage(page, ['obfs4']).lines.some(({ line }) => line === LINES[1]),
      piece,
    )
  }
})

test('whatever is around a bridge that stands on its own: it is found, and nothing is thrown', () => {
  const piece = fc.oneof(
    fc.constantFrom('<br>', '<p>', '</div>', '&lt;', '&#43;', '<b x="', '">', 'obfs4', 'İ', '<!-- x -->'),
    fc.string({ unit: 'binary' }).map((text) => text.replace(/[<]/g, '')),
  )
  fc.assert(
    fc.property(fc.array(piece), fc.array(piece), (before, after) => {
      const page = `${before.join('')}"><p>${LINES[0]}<p>${after.join('')}`
      assert.ok(parsePage(page, ['obfs4']).lines.some(({ line }) => line === LINES[0]))
    }),
  )
})
