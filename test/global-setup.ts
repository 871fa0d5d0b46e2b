import { startShared } from '../testbed/tor-network/shared.ts'

/** One private Tor network a test run: node's runner calls these before the first and after the last test file. */

let shared: { stop(): Promise<void> } | undefined

export async function globalSetup(): Promise<void> {
  if (process.env.POSTERN_TEST_TOR_NETWORK === undefined) shared = await startShared()
}

export async function globalTeardown(): Promise<void> {
  await shared?.stop()
}
