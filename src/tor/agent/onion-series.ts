import { counter, gauge, type Sample, type Series } from '../../agent/exposition.ts'
import type { OnionState } from '../contract.ts'
import type { Traffic } from './backends.ts'
import type { OnionFigures } from './tor-metrics.ts'

export interface OnionSeriesOptions {
  onions(): readonly OnionState[]
  /** Whether addresses may stand beside the names. */
  addresses(): boolean
  traffic(address: string): Traffic
  figures(address: string): OnionFigures
}

type Value = readonly [value: number | undefined, labels?: Readonly<Record<string, string>>]

/** Series of each onion, known by the name of its OnionService. What nobody knows is left out. */
export function onionSeries(options: OnionSeriesOptions): Series[] {
  const { traffic, figures } = options

  function* each(read: (onion: OnionState) => Iterable<Value>): Iterable<Sample> {
    const addresses = options.addresses()
    for (const onion of options.onions()) {
      const { name, address } = onion
      const own = addresses ? { onion: name, address: `${address}.onion` } : { onion: name }
      for (const [value, more] of read(onion)) {
        if (value !== undefined) yield { value, labels: more === undefined ? own : { ...own, ...more } }
      }
    }
  }

  function onion(
    make: typeof gauge,
    name: string,
    help: string,
    read: (onion: OnionState) => Value[0],
  ): Series {
    const series = make(`tor_agent_onion_${name}`, help, () => each((one) => [[read(one)]]))
    return { ...series, labelNames: ['onion'] }
  }

  function byReason(name: string, help: string, of: 'rejected' | 'rendezvousErrors'): Series {
    const series = counter(`tor_agent_onion_${name}`, help, () =>
      each(({ address }) =>
        figures(address)
          [of].entries()
          .map(([reason, value]) => [value, { reason }]),
      ),
    )
    return { ...series, labelNames: ['onion', 'reason'] }
  }

  return [
    onion(
      gauge,
      'descriptor_age_seconds',
      'Since the newest acknowledged upload of the descriptor; absent before the first.',
      ({ lastUpload }) =>
        lastUpload === undefined ? undefined : Math.max(0, Date.now() - lastUpload) / 1000,
    ),
    onion(
      counter,
      'uploads_asked_total',
      'Uploads of the descriptor that tor began, since it has had the onion.',
      ({ uploadsAsked }) => uploadsAsked,
    ),
    onion(
      counter,
      'uploads_acknowledged_total',
      'Uploads of the descriptor that a directory acknowledged, since tor has had the onion.',
      ({ uploadsAcknowledged }) => uploadsAcknowledged,
    ),
    onion(
      gauge,
      'intro_circuits',
      'Introduction circuits that stand, of an onion that tor has.',
      ({ address, state }) =>
        state === 'added' || state === 'published' ? figures(address).introCircuits : undefined,
    ),
    onion(gauge, 'streams', 'Connections of visitors that are open now.', ({ connections }) => connections),
    {
      ...counter(
        'tor_agent_onion_bytes_total',
        'Bytes between visitors and backends: in from visitors, out to them.',
        () =>
          each(({ address }) => {
            const { bytesIn, bytesOut } = traffic(address)
            return [
              [bytesIn, { direction: 'in' }],
              [bytesOut, { direction: 'out' }],
            ]
          }),
      ),
      labelNames: ['onion', 'direction'],
    },
    byReason('rejected_introductions_total', 'Introductions that tor refused (MetricsPort).', 'rejected'),
    onion(
      gauge,
      'pow_effort',
      'Proof of work that tor asks of visitors: 0 while there is no queue, or no such defence (MetricsPort).',
      ({ address }) => figures(address).powEffort,
    ),
    onion(
      gauge,
      'pow_queue',
      'Introductions that wait in the queue of the proof-of-work defence (MetricsPort).',
      ({ address }) => figures(address).powQueue,
    ),
    onion(
      counter,
      'rendezvous_total',
      'Rendezvous circuits that tor made to visitors (MetricsPort).',
      ({ address }) => figures(address).rendezvous,
    ),
    byReason(
      'rendezvous_errors_total',
      'Rendezvous circuits that did not come about (MetricsPort).',
      'rendezvousErrors',
    ),
  ]
}
