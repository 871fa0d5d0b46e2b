import { OPERATOR_LEASE, type Permission, PROCESS_PERMISSIONS } from '../../src/controller/permissions.ts'
import { TOR_KINDS } from '../../src/tor/api/kinds.ts'
import { TOR_PERMISSIONS } from '../../src/tor/operator/permissions.ts'
import { COMMENT } from './holes.ts'
import { type Install, meta, OPERATOR } from './install.ts'

/** Who may do what: one role a controller, one for the process, and those by which users get our kinds. */

const RBAC = 'rbac.authorization.k8s.io'

/** Controllers of the operator, by the names that `--controllers` takes. */
export const CONTROLLERS: Readonly<Record<string, readonly Permission[]>> = { tor: TOR_PERMISSIONS }

const roleName = (controller: string): string => `postern-${controller}`

export function clusterRole(install: Install, controller: string): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    metadata: { name: roleName(controller), labels: install.labels },
    rules: rules([...CONTROLLERS[controller]!, CRD_PERMISSION]),
  }
}

/** CRDs are of no namespace, so only a ClusterRole can allow it. */
const CRD_PERMISSION: Permission = {
  reason: 'Say at the start that a CRD is missing or older than the operator, and which.',
  apiGroups: ['apiextensions.k8s.io'],
  resources: ['customresourcedefinitions'],
  verbs: ['get'],
  resourceNames: TOR_KINDS.map(({ plural, apiVersion }) => `${plural}.${apiVersion.split('/')[0]}`),
}

export function clusterRoleBinding(install: Install, controller: string): object {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: roleName(controller), labels: install.labels },
    ...boundTo('ClusterRole', roleName(controller), install),
  }
}

/** The same rights in one namespace that the operator serves. */
export function namespacedRole(install: Install, controller: string, namespace: unknown): object[] {
  const name = roleName(controller)
  const metadata = { name, namespace, labels: install.labels }
  return [
    { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata, rules: rules(CONTROLLERS[controller]!) },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata,
      ...boundTo('Role', name, install),
    },
  ]
}

/** Of the process itself, in its own namespace. */
export function processRole(install: Install): object[] {
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'Role',
      metadata: meta(install, OPERATOR_LEASE),
      rules: rules(PROCESS_PERMISSIONS),
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'RoleBinding',
      metadata: meta(install, OPERATOR_LEASE),
      ...boundTo('Role', OPERATOR_LEASE, install),
    },
  ]
}

/** Whoever may view or edit a namespace by Kubernetes' own roles may do so with our kinds. */
export function userRoles(install: Install): object[] {
  const resources = TOR_KINDS.map((kind) => kind.plural)
  const role = (name: string, verbs: string[], into: string[]): object => ({
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    metadata: {
      name,
      labels: {
        ...install.labels,
        ...Object.fromEntries(into.map((one) => [`${RBAC}/aggregate-to-${one}`, 'true'])),
      },
    },
    rules: [{ apiGroups: [TOR_KINDS[0]!.apiVersion.split('/')[0]], resources, verbs }],
  })
  return [
    role('postern-view', ['get', 'list', 'watch'], ['view', 'edit', 'admin']),
    role('postern-edit', ['create', 'update', 'patch', 'delete', 'deletecollection'], ['edit', 'admin']),
  ]
}

function rules(permissions: readonly Permission[]): object[] {
  return permissions.map(({ reason, ...rule }) => ({ [COMMENT]: reason, ...rule }))
}

function boundTo(kind: string, name: string, install: Install): object {
  return {
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: 'ServiceAccount', name: OPERATOR, namespace: install.namespace }],
  }
}
