import { ROOT } from '../build/bundles.ts'
import { run } from './run.ts'

/** The commit that is checked out, for labels and times; SOURCE_DATE_EPOCH wins, and without Git all times are 0. */
export async function commit(): Promise<{ revision?: string; timestamp: number }> {
  const given = process.env.SOURCE_DATE_EPOCH
  const timestamp = given !== undefined && /^\d{1,11}$/.test(given) ? Number(given) : undefined
  try {
    const [revision = '', time = '0'] = (await run('git', ['-C', ROOT, 'log', '-1', '--format=%H %ct']))
      .trim()
      .split(' ')
    return { revision, timestamp: timestamp ?? Number(time) }
  } catch {
    return { timestamp: timestamp ?? 0 }
  }
}
