import { PodRunner } from './pods.ts'
import { deployment, MemoryCluster } from './pods-fixture.ts'

/** Runs one pod until it is killed: the parent in the test of kill -9. Arguments: state, script of the program. */
const [state = '', script = ''] = process.argv.slice(2)
const cluster = new MemoryCluster()
await cluster.apply(deployment('orphan', { args: ['child'] }))
await new PodRunner({ cluster, state, programs: { agent: [process.execPath, script] } }).start()
