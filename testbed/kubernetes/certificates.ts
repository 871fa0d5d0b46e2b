import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'

/** A certificate and its key, P-256, both PEM. */
export interface KeyPair {
  certificate: string
  /** PKCS 8 */
  key: string
}

export interface Subject {
  /** CN: the user's name for the API server. */
  commonName: string
  /** O: the user's groups. */
  organizations?: readonly string[]
}

export interface LeafRequest extends Subject {
  usage: 'client' | 'server'
  /** DNS names and IP addresses. */
  names?: readonly string[]
}

interface Issuer {
  subject: Name
  key: KeyObject
  keyId: Uint8Array<ArrayBuffer>
}

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
const COMMON_NAME = '2.5.4.3'
const ORGANIZATION = '2.5.4.10'
const day = 24 * 60 * 60 * 1000

/** Signs with a CA's key pair: a new one of `makeAuthority`, or one read back. */
export class CertificateAuthority {
  readonly pair: KeyPair
  readonly #issuer: Issuer

  constructor(pair: KeyPair, key: KeyObject) {
    this.pair = pair
    const read = AsnConvert.parse(derOf(pair.certificate), Certificate).tbsCertificate
    this.#issuer = { subject: read.subject, key, keyId: keyIdOf(read.subjectPublicKeyInfo) }
  }

  issue(request: LeafRequest): KeyPair {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const names = (request.names ?? []).map((name) =>
      isIP(name) === 0 ? new GeneralName({ dNSName: name }) : new GeneralName({ iPAddress: name }),
    )
    const usage = request.usage === 'client' ? id_kp_clientAuth : id_kp_serverAuth
    const certificate = signed(this.#issuer, nameOf(request), spkiOf(publicKey), [
      extension(id_ce_basicConstraints, true, new BasicConstraints({ cA: false })),
      extension(id_ce_keyUsage, true, new KeyUsage(KeyUsageFlags.digitalSignature)),
      extension(id_ce_extKeyUsage, false, new ExtendedKeyUsage([usage])),
      ...(names.length === 0
        ? []
        : [extension(id_ce_subjectAltName, false, new SubjectAlternativeName(names))]),
    ])
    return { certificate, key: pkcs8(privateKey) }
  }
}

export function makeAuthority(subject: Subject): CertificateAuthority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = spkiOf(publicKey)
  const self: Issuer = { subject: nameOf(subject), key: privateKey, keyId: keyIdOf(spki) }
  const certificate = signed(self, self.subject, spki, [
    extension(id_ce_basicConstraints, true, new BasicConstraints({ cA: true })),
    extension(
      id_ce_keyUsage,
      true,
      new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature),
    ),
  ])
  return new CertificateAuthority({ certificate, key: pkcs8(privateKey) }, privateKey)
}

/** From a day ago, for clocks that are behind, for a year: a test bed is short-lived. */
function signed(issuer: Issuer, subject: Name, spki: SubjectPublicKeyInfo, extensions: Extension[]): string {
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 })
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x3f) | 0x40
  const body = new TBSCertificate({
    version: Version.v3,
    serialNumber: new Uint8Array(serial).buffer,
    signature: algorithm,
    issuer: issuer.subject,
    subject,
    validity: new Validity({
      notBefore: new Date(Date.now() - day),
      notAfter: new Date(Date.now() + 365 * day),
    }),
    subjectPublicKeyInfo: spki,
    extensions: new Extensions([
      ...extensions,
      extension(id_ce_subjectKeyIdentifier, false, new SubjectKeyIdentifier(keyIdOf(spki))),
      extension(
        id_ce_authorityKeyIdentifier,
        false,
        new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(issuer.keyId) }),
      ),
    ]),
  })
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(body)), issuer.key)
  const der = AsnConvert.serialize(
    new Certificate({
      tbsCertificate: body,
      signatureAlgorithm: algorithm,
      signatureValue: new OctetString(new Uint8Array(signature)).buffer,
    }),
  )
  const lines = Buffer.from(der)
    .toString('base64')
    .match(/.{1,64}/g)
  return `-----BEGIN CERTIFICATE-----\n${lines?.join('\n')}\n-----END CERTIFICATE-----\n`
}

function nameOf({ commonName, organizations = [] }: Subject): Name {
  const part = (type: string, value: string) =>
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type, value: new AttributeValue({ utf8String: value }) }),
    ])
  return new Name([...organizations.map((value) => part(ORGANIZATION, value)), part(COMMON_NAME, commonName)])
}

function extension(extnID: string, critical: boolean, value: object): Extension {
  return new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })
}

function spkiOf(key: KeyObject): SubjectPublicKeyInfo {
  return AsnConvert.parse(key.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo)
}

function keyIdOf(spki: SubjectPublicKeyInfo): Uint8Array<ArrayBuffer> {
  return new Uint8Array(createHash('sha1').update(Buffer.from(spki.subjectPublicKey)).digest())
}

function pkcs8(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

function derOf(pem: string): Buffer {
  return Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
}
