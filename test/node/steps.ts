import type { TestContext } from 'node:test'
import type { Stage } from './stage.ts'

/** What files of steps have of the test that runs them, one after the other, on one cluster. */
export interface Steps {
  step(name: string, work: (t: TestContext) => Promise<unknown>): void
  /** Of the test, once its first step runs. */
  stage(): Stage
  /** Onion in the namespace `lab`, virtual port 443, that says {@link LAB_PAGE}. */
  hostname(): string
  /** To be done when the test ends, before the stage goes. */
  defer(work: () => Promise<unknown>): void
}

export const LAB_PAGE = 'hello from the lab'
/** Selects what a daemon's operator makes. */
export const OURS = 'app.kubernetes.io/managed-by=tor-operator'

/** A page, or why there is none, as curl in a pod has it. */
export function curl(stage: Stage, namespace: string, pod: string, ...args: string[]): Promise<string> {
  const command = ['curl', '--silent', '--show-error', '--max-time', '30', ...args]
  return stage.kubectl(['exec', '-n', namespace, pod, '--', ...command])
}
