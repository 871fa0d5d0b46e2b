import { z } from 'zod'
import { serviceName } from '../../cluster/api-kind.ts'

/** Name of a TorDaemon: its Service is called `<name>-metrics`, and no Service's name has more than 63 characters. */
export function daemonName(): z.ZodString {
  return serviceName("the daemon's objects", 63 - '-metrics'.length)
}

/** A field that names a TorDaemon of the same namespace. */
export function daemonRef(description: string): z.ZodType {
  return z
    .strictObject({ name: daemonName().describe('Name of the TorDaemon.') })
    .meta({ 'x-kubernetes-map-type': 'atomic' })
    .optional()
    .describe(description)
}
