const UNITS: Record<string, number> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
}

/** A Kubernetes quantity (`128Mi`, `1.5G`, `250m`) in base units, bytes or cores; undefined where it is none. */
export function parseQuantity(text: string): number | undefined {
  const parts = /^(\d{1,18}(?:\.\d{1,9})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$/.exec(text.trim())
  return parts === null ? undefined : Number(parts[1]) * UNITS[parts[2] ?? '']!
}
