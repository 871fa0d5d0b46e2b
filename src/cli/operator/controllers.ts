import type { ApiKind } from '../../cluster/api-kind.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { WorkObserver } from '../../controller/queue.ts'
import type { Logger } from '../../core/logger.ts'
import { TOR_KINDS } from '../../tor/api/kinds.ts'
import { prepareTorOperator } from '../../tor/operator/operator.ts'
import type { ControllerName } from './flags.ts'
import type { OperatorSettings } from './settings.ts'

/** Controllers whose caches are warm, and that write nothing before they are started. */
export interface Prepared {
  start(): void
  /** Takes no more work; resolves once what runs has ended. */
  close(): Promise<void>
}

export interface Preparing {
  cluster: Cluster
  settings: OperatorSettings
  log: Logger
  observer: WorkObserver
}

/** Seconds that a pod which is replaced goes on serving, at most; it ends sooner once its successor is published. */
const LINGER_SECONDS = 120

/** What `--controllers` names. */
export const CONTROLLERS: Record<
  ControllerName,
  {
    /** Kinds of its API. */
    kinds: readonly ApiKind[]
    /** Resolves once its caches are warm. */
    prepare(options: Preparing): Promise<Prepared>
  }
> = {
  tor: {
    kinds: TOR_KINDS,
    prepare: ({ cluster, settings, log, observer }) =>
      prepareTorOperator({
        cluster,
        log,
        queue: { concurrency: settings.concurrency, observer },
        settings: {
          loopbackBackends: false,
          serviceDns: true,
          image: settings.torImage!,
          ...(settings.imagePullPolicy === undefined ? {} : { imagePullPolicy: settings.imagePullPolicy }),
          lingerSeconds: LINGER_SECONDS,
          volumesLag: true,
          companions: true,
          networkPolicies: settings.networkPolicies,
          ...(settings.podNamespace === undefined ? {} : { operatorNamespace: settings.podNamespace }),
        },
      }),
  },
}
