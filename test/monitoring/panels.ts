import assert from 'node:assert/strict'
import type { Prometheus } from './prometheus.ts'
import type { panelQueries } from './sources.ts'

/**
 * Waits until each panel's queries have data.
 *
 * @param stir makes something happen while it is scraped, since rates tell of nothing else; called again and again
 */
export async function allHaveData(
  prometheus: Prometheus,
  queries: ReturnType<typeof panelQueries>,
  stir: () => Promise<unknown>,
): Promise<void> {
  assert.ok(queries.length > 4, 'panels to look at')
  await prometheus.until('every panel to have data', async () => {
    await stir()
    const empty: string[] = []
    for (const { panel, expression } of queries) {
      const found = (await prometheus.query(expression)).filter(({ value }) => value[1] !== 'NaN')
      if (found.length === 0) empty.push(`${panel}: ${expression}`)
    }
    return empty
  })
}
