import * as kubernetes from './kubernetes/global-setup.ts'
import * as tor from './tor-network/global-setup.ts'

// For `node --test --test-global-setup=testbed/global-setup.ts`, which takes one file: what a run's test files share.

export async function globalSetup(): Promise<void> {
  await kubernetes.globalSetup()
  try {
    await tor.globalSetup()
  } catch (error) {
    await kubernetes.globalTeardown()
    throw error
  }
}

export async function globalTeardown(): Promise<void> {
  try {
    await kubernetes.globalTeardown()
  } finally {
    await tor.globalTeardown()
  }
}
