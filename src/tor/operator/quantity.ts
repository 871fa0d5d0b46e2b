const UNITS: Record<string, number> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
}

/** Bytes of a Kubernetes quantity such as `256Mi`; undefined where there is none or it is none. */
export function memoryBytes(quantity: string | undefined): number | undefined {
  const match = /^([0-9]+(?:\.[0-9]+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/.exec(quantity ?? '')
  if (match === null) return undefined
  return Math.floor(Number(match[1]) * UNITS[match[2] ?? '']!)
}
