import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { makeReportIdentity } from './report-identity.ts'

test('the certificate is a valid self-signed one of its key, and a token stands beside it', () => {
  const identity = makeReportIdentity('postern-tor.default.tor')
  const certificate = new X509Certificate(identity.certificate)
  assert.equal(certificate.subject, 'CN=postern-tor.default.tor')
  assert.ok(certificate.verify(certificate.publicKey))
  assert.ok(certificate.checkPrivateKey(createPrivateKey(identity.privateKey)))
  assert.match(identity.token, /^[0-9a-f]{64}$/)
  assert.notEqual(makeReportIdentity('x').token, identity.token)
})
