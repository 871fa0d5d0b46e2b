import type { LevelWithSilent } from 'pino'
import { describeRef } from '../core/resource.ts'
import { announce } from './announce.ts'
import { startEmbedded } from './compose.ts'
import { stderrLogger } from './log.ts'
import { requireProgram } from './programs.ts'
import { onStop } from './signals.ts'
import { requireFolder, stateFolder } from './state.ts'
import { styleFor } from './style.ts'
import { version } from './version.ts'

/** Runs a folder of manifests until a signal. */
export async function runUp(
  path: string,
  options: { state?: string; logLevel: LevelWithSilent },
): Promise<void> {
  const folder = requireFolder(path)
  const state = stateFolder(options.state)
  requireProgram('tor', 'tor')
  const style = styleFor(process.stdout)
  const print = (line: string): void => console.log(`  ${line}`)
  const stop = onStop()
  console.log(
    `${style('bold', `Postern ${version()}`)}  manifests in ${folder}, state in ${state}. Ctrl-C ends it.`,
  )
  try {
    const running = await startEmbedded({
      folder,
      state,
      log: stderrLogger(options.logLevel),
      onProblem: (problem) => print(`${style('red', '✗')} ${problem}`),
      onChange: ({ ref, result, source }) =>
        print(`${style('gray', '·')} ${describeRef(ref)} ${result} (${source})`),
    })
    const silence = announce(running.cluster, print, style)
    await stop.asked
    silence()
    console.log('Ending. Once more ends at once.')
    await running.close()
  } finally {
    stop.dispose()
  }
}
