import { CommanderError } from 'commander'
import { codeOf } from '../core/errors.ts'
import { Exit, errorText, exitCodeOf, UsageError } from './errors.ts'
import { program } from './program.ts'

// `postern get … | head` is no error.
process.stdout.on('error', (error) => {
  if (codeOf(error) === 'EPIPE') process.exit(Exit.ok)
  throw error
})

try {
  await program().parseAsync()
} catch (caught) {
  let error = caught
  if (caught instanceof CommanderError) {
    // Help and version arrive as errors, too; help that nobody asked for has been printed already.
    if (caught.exitCode === 0) process.exit(Exit.ok)
    if (caught.code === 'commander.help') process.exit(Exit.usage)
    error = new UsageError(
      `${caught.message
        .replace(/^error: /, '')
        .replace('\n', ' ')
        .replace(/\.$/, '')}; see 'postern --help'`,
    )
  }
  process.stderr.write(`${errorText(error, (process.env.POSTERN_DEBUG ?? '') !== '')}\n`)
  process.exitCode = exitCodeOf(error)
}
