const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** Lower-case base32 (RFC 4648) without padding, as tor writes addresses and client keys. */
export function encodeBase32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      bits -= 5
      text += ALPHABET[(value >>> bits) & 31]
    }
    value &= (1 << bits) - 1
  }
  if (bits > 0) text += ALPHABET[(value << (5 - bits)) & 31]
  return text
}

/**
 * The bytes of base32 in either case, without padding. Only the canonical form is read, so that two texts never
 * name the same bytes: undefined for a foreign character, an impossible length or left-over bits that are set.
 */
export function decodeBase32(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8))
  if (Math.ceil((bytes.length * 8) / 5) !== text.length) return undefined
  let bits = 0
  let value = 0
  let at = 0
  for (const char of text.toLowerCase()) {
    const digit = ALPHABET.indexOf(char)
    if (digit < 0) return undefined
    value = (value << 5) | digit
    bits += 5
    if (bits >= 8) {
      bits -= 8
      bytes[at++] = value >>> bits
      value &= (1 << bits) - 1
    }
  }
  return value === 0 ? bytes : undefined
}
