import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plan } from './plan.ts'
import { condition, NOW, observed, reportOf } from './plan-fixture.ts'

const versions: [version: string | undefined, expected: string, words: RegExp][] = [
  [
    '0.4.9.10',
    'False VersionTooOld',
    /tor 0\.4\.9\.10 has known faults .* update it to 0\.4\.9\.11 or newer/,
  ],
  ['0.4.8.16', 'False VersionTooOld', /0\.4\.8\.16/],
  ['0.4.9.11', 'True VersionSupported', /tor 0\.4\.9\.11/],
  ['0.4.9.12', 'True VersionSupported', /tor 0\.4\.9\.12/],
  ['0.5.0.1-alpha', 'True VersionSupported', /0\.5\.0\.1/],
  [undefined, 'Unknown Pending', /not told its version/],
]
for (const [version, expected, words] of versions) {
  test(`tor ${version ?? 'of no version yet'}: ${expected}`, () => {
    const report = reportOf([])
    const { version: _version, ...tor } = report.tor
    const result = plan(
      observed({
        view: { report: { ...report, tor: { ...tor, ...(version === undefined ? {} : { version }) } } },
      }),
      NOW,
    )
    const found = condition(result, 'tor', 'VersionSupported')
    assert.equal(`${found.status} ${found.reason}`, expected)
    assert.match(found.message, words)
    assert.equal(condition(result, 'tor', 'Ready').status, found.status)
  })
}
