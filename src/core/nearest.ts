/**
 * The candidate that a person most likely meant by a mistyped word, or nothing when none is close: by edit
 * distance (a swap of neighbours counts once), without regard to case, at most a third of the word's length.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length === 0 || word.length > LONGEST) return undefined
  const lower = word.toLowerCase()
  let best: string | undefined
  let least = Math.max(2, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    if (candidate.length > LONGEST || Math.abs(candidate.length - word.length) >= least) continue
    const distance = editDistance(lower, candidate.toLowerCase())
    // A distance of the whole word says nothing: "ab" is not "cd".
    if (distance < least && distance < Math.max(word.length, candidate.length)) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Longer words come from no keyboard, and the table grows with the square. */
const LONGEST = 200

function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, beforeLast[j - 2]! + 1)
      }
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}
