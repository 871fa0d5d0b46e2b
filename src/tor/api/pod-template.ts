import { z } from 'zod'
import { objectName } from '../../cluster/api-kind.ts'
import { withRules } from '../../cluster/cel.ts'

/** What a user may say of the pod of a daemon: where it runs and as whom. Its containers and volumes are Postern's. */

/** Labels and annotations below these are the operator's: selectors, NetworkPolicies and roll-outs go by them. */
const OWN_PREFIXES = ['app.kubernetes.io/', 'tor.fr0st.dev/']
const OWN_PREFIX_MESSAGE = `may not set names that begin with ${OWN_PREFIXES.join(' or ')}, which the operator sets itself`

function metadataMap(description: string, value: z.ZodString): z.ZodType {
  const map = z.record(z.string(), value).superRefine((entries, context) => {
    const names = Object.keys(entries)
    if (names.length > 32) context.addIssue({ code: 'custom', message: 'must have at most 32 entries' })
    for (const name of names) {
      if (OWN_PREFIXES.some((prefix) => name.startsWith(prefix))) {
        context.addIssue({ code: 'custom', path: [name], message: OWN_PREFIX_MESSAGE })
      }
    }
  })
  const starts = OWN_PREFIXES.map((prefix) => `name.startsWith('${prefix}')`).join(' || ')
  return withRules(map, { rule: `!self.exists(name, ${starts})`, message: OWN_PREFIX_MESSAGE })
    .meta({ maxProperties: 32 })
    .optional()
    .describe(description)
}

/** What Kubernetes reads by itself: taken as it is, checked when the pod is made. */
function freeForm(description: string): z.ZodType {
  return z.looseObject({}).optional().describe(description)
}

const key = (): z.ZodString => z.string().min(1).max(317)
const labelValue = (): z.ZodString => z.string().max(63, 'must be at most 63 characters, as every label')
const seconds = (least: number, most: number): z.ZodInt => {
  const message = `must be from ${least} to ${most} seconds`
  return z.int({ error: 'must be a whole number of seconds' }).min(least, message).max(most, message)
}
const id = (least: number, what: string): z.ZodOptional<z.ZodInt> =>
  z
    .int({ error: 'must be a whole number' })
    .min(least, least === 1 ? 'must not be 0: the pod never runs as root' : 'must not be negative')
    .max(2_147_483_647)
    .optional()
    .describe(what)

const toleration = z.strictObject({
  key: key().optional().describe('Taint to tolerate; none with operator Exists: all of them.'),
  operator: z.enum(['Exists', 'Equal']).optional().describe("Default 'Equal'."),
  value: labelValue().optional().describe('Value of the taint.'),
  effect: z
    .enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    .optional()
    .describe('Default: all effects.'),
  tolerationSeconds: z
    .int()
    .optional()
    .describe('How long a NoExecute taint is tolerated; default: for ever.'),
})

const spread = z.strictObject({
  maxSkew: z.int().min(1).max(1000).describe('How uneven the pods may be spread.'),
  topologyKey: key().describe('Label of the nodes that makes up the domains.'),
  whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']).describe('What when it cannot be kept.'),
  labelSelector: freeForm('Pods that are counted.'),
  minDomains: z.int().min(1).max(1000).optional().describe('Fewest domains that there should be.'),
  matchLabelKeys: z.array(key()).max(16).optional().describe('Labels of the pod that narrow the selector.'),
  nodeAffinityPolicy: z.enum(['Honor', 'Ignore']).optional().describe('Whether affinity narrows the nodes.'),
  nodeTaintsPolicy: z.enum(['Honor', 'Ignore']).optional().describe('Whether taints narrow the nodes.'),
})

const securityContext = z.strictObject({
  runAsUser: id(1, "User id of the processes; default: the image's."),
  runAsGroup: id(0, "Group id of the processes; default: the image's."),
  fsGroup: id(0, 'Group id that owns the volumes.'),
  fsGroupChangePolicy: z
    .enum(['OnRootMismatch', 'Always'])
    .optional()
    .describe('When the owner of the volumes is changed.'),
  supplementalGroups: z
    .array(z.int().min(0).max(2_147_483_647))
    .max(32)
    .optional()
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Further group ids of the processes.'),
})

const podSpec = z.strictObject({
  nodeSelector: z
    .record(z.string(), labelValue())
    .meta({ maxProperties: 32 })
    .optional()
    .describe('Labels that a node must have.'),
  tolerations: z
    .array(toleration)
    .max(32, 'must have at most 32 tolerations')
    .optional()
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('Taints that the pod tolerates.'),
  affinity: freeForm('Affinity of the pod, as in any pod.'),
  topologySpreadConstraints: z
    .array(spread)
    .max(16, 'must have at most 16 constraints')
    .optional()
    .meta({ 'x-kubernetes-list-type': 'atomic' })
    .describe('How the pods of this template spread.'),
  priorityClassName: objectName().optional().describe('Name of a PriorityClass.'),
  runtimeClassName: objectName().optional().describe('Name of a RuntimeClass.'),
  imagePullSecrets: z
    .array(z.strictObject({ name: objectName().describe('Name of the Secret.') }))
    .max(16, 'must have at most 16 Secrets')
    .optional()
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
    .describe('Secrets of this namespace that the image is pulled with.'),
  terminationGracePeriodSeconds: seconds(30, 600)
    .optional()
    .describe('How long connections may run on when the pod is replaced.'),
  securityContext: securityContext.optional().describe('As whom the processes run.'),
})

export const podTemplate: z.ZodType = z
  .strictObject({
    metadata: z
      .strictObject({
        labels: metadataMap('Further labels of the pod.', labelValue()),
        annotations: metadataMap(
          'Further annotations of the pod.',
          z.string().max(4096, 'must be at most 4096 characters'),
        ),
      })
      .optional()
      .describe('What the pod is marked with.'),
    spec: podSpec.optional().describe('Where the pod runs and as whom.'),
  })
  .optional()
  .describe("What differs from the operator's own pod; a change replaces the pod.")

export interface PodTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }
  spec?: {
    nodeSelector?: Record<string, string>
    tolerations?: Record<string, unknown>[]
    affinity?: Record<string, unknown>
    topologySpreadConstraints?: Record<string, unknown>[]
    priorityClassName?: string
    runtimeClassName?: string
    imagePullSecrets?: { name: string }[]
    terminationGracePeriodSeconds?: number
    securityContext?: {
      runAsUser?: number
      runAsGroup?: number
      fsGroup?: number
      fsGroupChangePolicy?: 'OnRootMismatch' | 'Always'
      supplementalGroups?: number[]
    }
  }
}
