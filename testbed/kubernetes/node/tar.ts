/** What a tar writer has to be told of one entry. Paths are relative, without a leading or trailing slash. */
export type TarEntry =
  | { path: string; kind: 'file'; content: Uint8Array; mode?: number }
  | { path: string; kind: 'folder'; mode?: number }
  | { path: string; kind: 'link'; target: string }

const BLOCK = 512

/**
 * A tar file (ustar) in pieces, owned by root and of no date, so that the same entries always give the same bytes. In order;
 * folders are entries of their own.
 */
export function tar(entries: readonly TarEntry[]): Uint8Array[] {
  const pieces: Uint8Array[] = []
  for (const entry of entries) {
    pieces.push(header(entry))
    if (entry.kind !== 'file') continue
    const rest = entry.content.length % BLOCK
    pieces.push(entry.content)
    if (rest > 0) pieces.push(Buffer.alloc(BLOCK - rest))
  }
  pieces.push(Buffer.alloc(2 * BLOCK))
  return pieces
}

function header(entry: TarEntry): Buffer {
  const block = Buffer.alloc(BLOCK)
  const { name, prefix } = split(entry.kind === 'folder' ? `${entry.path}/` : entry.path)
  const size = entry.kind === 'file' ? entry.content.length : 0
  const mode = entry.kind === 'link' ? 0o777 : (entry.mode ?? (entry.kind === 'folder' ? 0o755 : 0o644))
  block.write(name, 0, 100)
  block.write(octal(mode, 8), 100)
  block.write(octal(0, 8), 108)
  block.write(octal(0, 8), 116)
  block.write(octal(size, 12), 124)
  block.write(octal(0, 12), 136)
  block.write('        ', 148)
  block.write({ file: '0', folder: '5', link: '2' }[entry.kind], 156)
  if (entry.kind === 'link') {
    if (Buffer.byteLength(entry.target) > 100) throw new RangeError(`link target too long: ${entry.target}`)
    block.write(entry.target, 157, 100)
  }
  block.write('ustar\u000000', 257)
  block.write(prefix, 345, 155)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

/** A path above 100 bytes is kept in two parts, divided at a slash. */
function split(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: '' }
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (name !== '' && Buffer.byteLength(name) <= 100 && Buffer.byteLength(prefix) <= 155)
      return { name, prefix }
  }
  throw new RangeError(`path too long for a tar file: ${path}`)
}

function octal(value: number, width: number): string {
  const digits = value.toString(8).padStart(width - 1, '0')
  if (digits.length >= width) throw new RangeError(`${value} does not fit into a tar header`)
  return digits
}
