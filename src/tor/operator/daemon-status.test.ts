import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plan } from './plan.ts'
import { condition, NOW, observed, observedOnion, onionService, reportOf } from './plan-fixture.ts'

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

test('tells whether tor is connected, and how many of its onions can be found', () => {
  const web = observedOnion(onionService('web'))
  const statusOf = (bootstrapped: boolean, onions: Parameters<typeof reportOf>[0]) => {
    const report = reportOf(onions)
    report.tor = { ...report.tor, bootstrapped, progress: bootstrapped ? 100 : 45 }
    const result = plan(observed({ onions: [web], view: { report } }), NOW)
    const { status, reason } = condition(result, 'tor', 'TorBootstrapped')
    const daemon = result.status.find(({ ref }) => ref.kind === 'TorDaemon')!.status
    return [status, reason, daemon.bootstrapProgress, daemon.onionsPublished]
  }
  assert.deepEqual(statusOf(false, [{ state: 'added' }]), ['False', 'Bootstrapping', 45, 0])
  assert.deepEqual(statusOf(true, [{ lastUpload: NOW - 1000 }]), ['True', 'Bootstrapped', 100, 1])
})
