import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  Certificate,
  Name,
  RelativeDistinguishedName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'

/** What an agent serves its report with, and what the operator pins. */
export interface ReportIdentity {
  /** PEM */
  certificate: string
  /** PEM, PKCS 8 */
  privateKey: string
  /** Bearer token, 64 hexadecimal digits. */
  token: string
}

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
const COMMON_NAME = '2.5.4.3'

/**
 * Makes a self-signed P-256 certificate (RFC 5280), its key, and a token. The operator pins this very certificate,
 * so its dates carry no meaning: they span every clock that is likely to be met.
 */
export function makeReportIdentity(commonName: string): ReportIdentity {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 })
  const name = new Name([
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({
        type: COMMON_NAME,
        value: new AttributeValue({ utf8String: commonName.slice(0, 64) }),
      }),
    ]),
  ])
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x3f) | 0x40
  const body = new TBSCertificate({
    version: Version.v3,
    serialNumber: new Uint8Array(serial).buffer,
    signature: algorithm,
    issuer: name,
    subject: name,
    validity: new Validity({
      notBefore: new Date('2000-01-01T00:00:00Z'),
      notAfter: new Date('2049-12-31T23:59:59Z'),
    }),
    subjectPublicKeyInfo: AsnConvert.parse(
      publicKey.export({ type: 'spki', format: 'der' }),
      SubjectPublicKeyInfo,
    ),
  })
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(body)), privateKey)
  const der = AsnConvert.serialize(
    new Certificate({
      tbsCertificate: body,
      signatureAlgorithm: algorithm,
      signatureValue: new OctetString(new Uint8Array(signature)).buffer,
    }),
  )
  return {
    certificate: pem('CERTIFICATE', Buffer.from(der)),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    token: randomBytes(32).toString('hex'),
  }
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
