import type { Resource } from '../core/resource.ts'
import type { Scope } from './cluster.ts'

export function hasLabels({ metadata }: Resource, { labels }: Scope): boolean {
  return Object.entries(labels).every(([name, value]) => metadata.labels?.[name] === value)
}

/** As in the API: `a=b,c=d`; empty for all. */
export function labelSelector(scope: Scope | undefined): string {
  return Object.entries(scope?.labels ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(',')
}
