import { inflateRawSync } from 'node:zlib'
import { PosternError } from '../../src/core/errors.ts'

const END = 0x06054b50
const ENTRY = 0x02014b50
const STORED = 0
const DEFLATED = 8

/** The content of one file in a zip archive (APPNOTE 4.3; no zip64, no encryption). */
export function unzip(zip: Buffer, name: string): Buffer {
  const end = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]))
  if (end < 0 || zip.readUInt32LE(end) !== END) throw broken('it has no directory')
  const count = zip.readUInt16LE(end + 10)
  let at = zip.readUInt32LE(end + 16)
  for (let index = 0; index < count; index++) {
    if (zip.readUInt32LE(at) !== ENTRY) throw broken('its directory is cut short')
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) =>
      zip.readUInt16LE(at + offset),
    )
    const next = at + 46 + nameLength! + extraLength! + commentLength!
    if (zip.toString('utf8', at + 46, at + 46 + nameLength!) === name) {
      const method = zip.readUInt16LE(at + 10)
      const [packed, size, local] = [20, 24, 42].map((offset) => zip.readUInt32LE(at + offset))
      // The local header's extra field may have another length than the directory's.
      const begin = local! + 30 + zip.readUInt16LE(local! + 26) + zip.readUInt16LE(local! + 28)
      const content = zip.subarray(begin, begin + packed!)
      if (method !== STORED && method !== DEFLATED)
        throw broken(`${name} is packed with method ${method}, which is unknown`)
      const found = method === STORED ? content : inflateRawSync(content)
      if (found.length !== size) throw broken(`${name} has ${found.length} bytes instead of ${size}`)
      return found
    }
    at = next
  }
  throw broken(`${name} is not in it`)
}

function broken(what: string): PosternError {
  return new PosternError('BrokenZip', `the zip archive cannot be used (${what}): install the package again`)
}
