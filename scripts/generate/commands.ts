import type { Command, Option } from 'commander'
import { program } from '../../src/cli/program.ts'

/** docs/commands.md: every command of `postern`, with its options. */

export function commandReference(): string {
  const out = [
    '# Commands',
    '',
    'Made by `npm run generate` from the command line itself; `postern COMMAND --help` has examples. What keeps the keys of onions is also told in [backup](backup.md) and [moving an onion](moving-an-onion.md).',
  ]
  for (const command of program().commands) out.push(...sections(command, 'postern', 2))
  return `${out.join('\n')}\n`
}

function sections(command: Command, parent: string, level: number): string[] {
  const name = `${parent} ${command.name()}`
  const below = command.commands.filter((one) => one.name() !== 'help')
  const usage = below.length > 0 ? 'COMMAND …' : command.usage()
  const options = command.options.filter(({ hidden }) => !hidden)
  return [
    '',
    `${'#'.repeat(level)} ${name}`,
    '',
    command.description(),
    '',
    `\`${name} ${usage}\``,
    ...(options.length === 0 ? [] : ['', '| option | |', '| --- | --- |', ...options.map(row)]),
    ...below.flatMap((one) => sections(one, name, level + 1)),
  ]
}

function row(option: Option): string {
  const { flags, description, argChoices, defaultValue } = option
  const choices = argChoices === undefined ? '' : `: ${argChoices.map((one) => `\`${one}\``).join(', ')}`
  const fallback = typeof defaultValue === 'string' ? ` (default: ${defaultValue})` : ''
  const text = `${description}${choices}${fallback}`
  return `| \`${flags}\` | ${text.replaceAll('|', '\\|')} |`
}
