/** Whether a version of tor is older than another; dotted numbers, what is missing counts as 0, suffixes do not count. */
export function olderThan(version: string, least: string): boolean {
  const a = version.split(/[.-]/).map(Number)
  const b = least.split('.').map(Number)
  for (let index = 0; index < Math.max(a.length, b.length); index += 1) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}
