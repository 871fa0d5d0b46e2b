/** How long ago, in the words of kubectl: 45s, 2m, 5m30s, 3h, 5d. */
export function age(from: string | undefined, now: number): string {
  const start = from === undefined ? Number.NaN : Date.parse(from)
  if (Number.isNaN(start)) return '<unknown>'
  return humanDuration(now - start)
}

/**
 * A duration as kubectl prints it (k8s.io/apimachinery, duration.HumanDuration): two units while the first is
 * small, one afterwards.
 *
 * @param milliseconds may be a little below zero, where clocks differ
 */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.trunc(milliseconds / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 120) return `${Math.max(0, seconds)}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.floor(hours / 24)
  if (days < 8) return two(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.floor(days / 365)
  return years < 8 ? two(years, 'y', days % 365, 'd') : `${years}y`
}

function two(first: number, unit: string, second: number, smaller: string): string {
  return second === 0 ? `${first}${unit}` : `${first}${unit}${second}${smaller}`
}
