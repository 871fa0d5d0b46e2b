import { PosternError } from '../core/errors.ts'

export type ClusterErrorCode =
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  /** An object of that name is somebody else's. */
  | 'Taken'
  | 'Gone'
  | 'Invalid'
  | 'Unavailable'
  | 'Forbidden'
  /** The namespace is being deleted: nothing new is taken there. */
  | 'Terminating'

/** What a cluster says no with: the reasons of the Kubernetes API, for both stores. */
export class ClusterError extends PosternError {
  override readonly name: string = 'ClusterError'

  constructor(code: ClusterErrorCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options)
  }
}
