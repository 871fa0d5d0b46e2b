import type { Store } from '../../cluster/embedded/store.ts'
import type { Kind, Resource } from '../../core/resource.ts'
import { withStore } from '../objects.ts'
import { stateFolder } from '../state.ts'
import { version } from '../version.ts'

/** Where keys are: the state folder of this machine, or a Kubernetes cluster. */
export interface Place {
  /** By namespace and name. Without a namespace: of all. */
  list<T extends Resource>(kind: Kind<T>, namespace?: string): Promise<T[]>
  /** undefined: there is none. */
  get<T extends Resource>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined>
  /** @throws ClusterError `AlreadyExists` */
  create<T extends Resource>(kind: Kind<T>, object: T): Promise<void>
  /** Server-side apply, forced: what is given becomes so, what is not stays. */
  apply<T extends Resource>(kind: Kind<T>, object: T): Promise<void>
}

export interface PlaceOptions {
  state?: string
  cluster?: boolean
  kubeconfig?: string
  context?: string
}

/** Who owns what these commands write. */
const MANAGER = 'postern/keys'
const PAGE = 500

/**
 * Works on the cluster where one is asked for, otherwise on the state folder.
 *
 * @throws PosternError `StateNotFound`, `KubeconfigNotFound`, `KubeconfigInvalid`, `InClusterInvalid`
 */
export async function withPlace<T>(options: PlaceOptions, work: (place: Place) => Promise<T>): Promise<T> {
  const { cluster, kubeconfig, context, state } = options
  if (cluster !== true && kubeconfig === undefined && context === undefined) {
    return withStore(stateFolder(state), (store) => work(storePlace(store)))
  }
  const { connect, loadSettings } = await import('../../cluster/kubernetes/connect.ts')
  const choice = {
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
  }
  const api = connect(loadSettings(choice), { component: 'keys', version: version() })
  try {
    return await work({
      async list(kind, namespace) {
        const items = []
        for (let token: string | undefined, first = true; first || token !== undefined; first = false) {
          const page = await api.list(kind, {
            limit: PAGE,
            ...(namespace === undefined ? {} : { namespace }),
            ...(token === undefined ? {} : { continue: token }),
          })
          items.push(...page.items)
          token = page.continue
        }
        return items
      },
      get: (kind, namespace, name) => orNone(api.get(kind, { namespace, name })),
      async create(kind, object) {
        await api.create(kind, object, { fieldManager: MANAGER })
      },
      async apply(kind, object) {
        await api.apply(kind, object, { fieldManager: MANAGER })
      },
    })
  } finally {
    await api.close()
  }
}

function storePlace(store: Store): Place {
  return {
    async list(kind, namespace) {
      return store.list(kind, namespace) as never
    },
    async get({ apiVersion, kind }, namespace, name) {
      return store.get({ apiVersion, kind, namespace, name }) as never
    },
    async create(_kind, object) {
      store.create(object, MANAGER)
    },
    async apply(_kind, object) {
      store.apply(object, MANAGER)
    },
  }
}

async function orNone<T>(got: Promise<T>): Promise<T | undefined> {
  try {
    return await got
  } catch (error) {
    if ((error as { code?: unknown }).code === 'NotFound') return undefined
    throw error
  }
}
