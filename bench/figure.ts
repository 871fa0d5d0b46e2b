/** One measured figure of a benchmark. */
export interface Figure {
  figure: string
  /** NaN: could not be taken here; the figure's name says why. */
  value: number
  unit: string
  /** What must hold, e.g. `<= 45 s`. */
  bar?: string
  ok?: boolean
}

export type Report = (figure: Figure) => void
