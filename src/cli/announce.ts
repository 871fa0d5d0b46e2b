import type { Cluster } from '../cluster/cluster.ts'
import { type Condition, findCondition } from '../core/conditions.ts'
import { keyOf, type Resource } from '../core/resource.ts'
import { ONION_PROXY, type OnionProxy } from '../tor/api/onion-proxy.ts'
import { ONION_SERVICE, type OnionService } from '../tor/api/onion-service.ts'
import { TOR_DAEMON } from '../tor/api/tor-daemon.ts'
import { printable, type Style } from './style.ts'

/** One line for each object that becomes ready, or stops being so: what a person who runs `up` wants to see. */
export function announce(cluster: Cluster, print: (line: string) => void, style: Style): () => void {
  const stops = [ONION_SERVICE, ONION_PROXY, TOR_DAEMON].map((kind) =>
    cluster.cache<Resource>(kind).subscribe(({ before, after }) => {
      const line = after === undefined ? undefined : lineFor(before, after, style)
      if (line !== undefined) print(line)
    }),
  )
  return () => {
    for (const stop of stops) stop()
  }
}

/** The line for a change, or undefined where it says nothing new. */
export function lineFor(before: Resource | undefined, after: Resource, style: Style): string | undefined {
  const was = readyOf(before)
  const is = readyOf(after)
  if (is === undefined || (was?.status === is.status && was.reason === is.reason)) return undefined
  const name = style('bold', `${after.kind} ${keyOf(after)}`)
  if (is.status === 'True') return `${style('green', '✓')} ${name} is ready${whereTo(after)}`
  const mark = was?.status === 'True' ? style('red', '✗') : style('yellow', '…')
  return `${mark} ${name}: ${printable(is.message === '' ? is.reason : is.message)}`
}

function readyOf(object: Resource | undefined): Condition | undefined {
  return findCondition((object?.status as { conditions?: Condition[] } | undefined)?.conditions, 'Ready')
}

/** How it is reached. */
function whereTo(object: Resource): string {
  if (object.kind === ONION_SERVICE.kind) {
    const { spec, status } = object as OnionService
    return `: ${spec.ports.map(({ virtualPort }) => addressOf(status?.hostname ?? '', virtualPort)).join('  ')}`
  }
  if (object.kind === ONION_PROXY.kind) {
    const { status } = object as OnionProxy
    return `: ${(status?.targets ?? []).map(({ name, endpoint }) => `${name} at ${endpoint}`).join(', ')}`
  }
  return ''
}

/** An onion's port as a person would open it. */
export function addressOf(hostname: string, port: number): string {
  if (port === 80) return `http://${hostname}/`
  if (port === 443) return `https://${hostname}/`
  return `${hostname}:${port}`
}
