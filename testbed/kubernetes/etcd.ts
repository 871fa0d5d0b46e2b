import { PosternError } from '../../src/core/errors.ts'
import { ask } from './http.ts'

/** Compacts etcd through its gateway and gives the revision; the current one unless it is given. */
export async function compact(url: string, revision?: number): Promise<number> {
  const target = revision ?? (await currentRevision(url))
  await call(url, '/v3/kv/compaction', { revision: String(target), physical: true })
  return target
}

async function currentRevision(url: string): Promise<number> {
  const status = (await call(url, '/v3/maintenance/status', {})) as { header?: { revision?: unknown } }
  const revision = Number(status.header?.revision)
  if (!Number.isSafeInteger(revision)) throw new PosternError('TestbedEtcd', 'etcd tells no revision')
  return revision
}

async function call(url: string, path: string, body: unknown): Promise<unknown> {
  const answer = await ask(url + path, { body })
  if (answer.status !== 200) {
    throw new PosternError(
      'TestbedEtcd',
      `etcd's ${path} says ${answer.status}: ${answer.body.slice(0, 500)}`,
    )
  }
  return JSON.parse(answer.body)
}
