/** Do two IPv4 ranges (`10.0.0.0/8`, or one address) share an address? */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [parse(one), parse(other)]
  const bits = Math.min(a.bits, b.bits)
  const shift = 2 ** (32 - bits)
  return Math.floor(a.value / shift) === Math.floor(b.value / shift)
}

/** 32 for one address. */
export function prefixLength(cidr: string): number {
  return parse(cidr).bits
}

function parse(cidr: string): { value: number; bits: number } {
  const [address = '', bits = '32'] = cidr.split('/')
  const value = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
  return { value, bits: Number(bits) }
}
