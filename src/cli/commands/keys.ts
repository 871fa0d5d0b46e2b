import { Command } from 'commander'
import type { CheckOptions } from '../keys/check.ts'
import type { ExportOptions } from '../keys/export.ts'
import type { ImportOptions } from '../keys/import.ts'
import type { RotateOptions } from '../keys/rotate.ts'
import { DEFAULT_NAMESPACE } from '../objects.ts'
import { example, outputOption, stateOption } from '../options.ts'

/** An address is its key. These commands take keys out, bring them in, look after them, and change them. */
export function keysCommand(): Command {
  const command = new Command('keys')
    .summary('back up, move in, check and rotate keys of onions')
    .description(
      'Keys of OnionServices: whoever has one has the address. Works on the state folder of this machine, or with --cluster on a Kubernetes cluster, with your own rights there.',
    )
  for (const one of [exportCommand(), importCommand(), checkCommand(), rotateCommand()])
    command.addCommand(one)
  return command
}

const say = (line: string): void => console.error(line)
const print = (text: string): void => console.log(text)

interface Names {
  namespace?: string
  allNamespaces?: true
}

/** undefined: all of them. */
const chosen = ({ namespace = DEFAULT_NAMESPACE, allNamespaces }: Names): string | undefined =>
  allNamespaces === true ? undefined : namespace

function exportCommand(): Command {
  const command = new Command('export')
    .summary('write keys to an encrypted file')
    .description(
      "Writes keys to a file that age encrypts: a tar with tor's folder of each onion. 'age -d FILE | tar x' opens it without Postern.",
    )
    .argument('[onion...]', 'names of OnionServices (default: all of the namespace)')
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('--output <file>', 'file to make; one that is there is not touched')
    .option('--recipient <age1…>', 'who may open it; may be given several times', gathered, [])
    .option('--recipients-file <file>', 'who may open it, a line each')
    .option('--passphrase-file <file>', 'file whose first line is the passphrase; - for standard input')
    .option('--with-client-keys', 'also the private keys of clients that were made here')
    .option(
      '--plain-folder <dir>',
      "instead: a folder to make, with tor's folders as they are, not encrypted",
    )
    .action(async (names: string[], options: ExportOptions & Names) => {
      const { exportKeys } = await import('../keys/export.ts')
      await exportKeys(names, { ...options, namespace: chosen(options) }, say)
    })
  return example(
    placed(command),
    'postern keys export -A --cluster --recipients-file team.txt --output onions.age',
    'postern keys export web --passphrase-file pass.txt --output web.age',
  )
}

function importCommand(): Command {
  const command = new Command('import')
    .summary('bring keys in, of a backup or of a tor of its own')
    .description(
      'Makes the Secrets of a backup, or of a HiddenServiceDir (or a folder of several), and prints what an OnionService says to have that address. Nothing is written before all was looked at, and no key is replaced.',
    )
    .argument('<path>', "file of 'keys export', or a folder of tor")
    .option('--identity-file <file>', 'identity of age (AGE-SECRET-KEY-1…) that opens it')
    .option('--passphrase-file <file>', 'file whose first line is the passphrase; - for standard input')
    .option('--name <secret>', "for a folder: name of the Secret (default: the folder's)")
    .option('--replace', 'replace a Secret that holds another key')
    .option('--dry-run', 'only say what would be done')
    .action(async (path: string, options: ImportOptions) => {
      const { importKeys } = await import('../keys/import.ts')
      await importKeys(path, options, { say, print })
    })
  return example(
    placed(command),
    'postern keys import onions.age --identity-file key.txt --cluster',
    'postern keys import /var/lib/tor/news --name news-key -n web',
  )
}

function checkCommand(): Command {
  const command = new Command('check')
    .summary('look whether keys are there and whole')
    .description('Looks at the keys of OnionServices, or with --file at a backup or a folder of tor.')
    .argument('[onion...]', 'names of OnionServices (default: all of the namespace)')
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('--file <path>', 'a backup, or a folder of tor')
    .option('--identity-file <file>', 'identity of age that opens the backup')
    .option('--passphrase-file <file>', 'file whose first line is the passphrase; - for standard input')
    .addOption(outputOption(['json'], 'for programs'))
    .action(async (names: string[], options: CheckOptions & Names) => {
      const { checkKeys } = await import('../keys/check.ts')
      await checkKeys(names, { ...options, namespace: chosen(options) }, print)
    })
  return example(
    placed(command),
    'postern keys check -A --cluster',
    'postern keys check --file onions.age --identity-file key.txt',
  )
}

function rotateCommand(): Command {
  const command = new Command('rotate')
    .summary('give an onion a new address, and keep the old one for a while')
    .description(
      'Makes a new key, has the OnionService use it, and keeps the address of now among its former ones. Both stand in its status.',
    )
    .argument('<onion>', 'name of the OnionService')
    .option('--overlap <time>', 'how long both addresses are served: 12h, 30d, 8w', '30d')
    .option('--key <secret>', 'Secret with the new key, such as one of a vanity address')
    .option('--print', 'make the key only, and print what its manifest says then')
    .option('--dry-run', 'only say what would be done')
    .action(async (name: string, options: RotateOptions & Names) => {
      const { rotateKey } = await import('../keys/rotate.ts')
      const { namespace = DEFAULT_NAMESPACE } = options
      await rotateKey(name, { ...options, namespace }, { say, print })
    })
  return example(placed(command), 'postern keys rotate web --overlap 60d')
}

function placed(command: Command): Command {
  command
    .option('-n, --namespace <name>', `namespace (default: ${DEFAULT_NAMESPACE})`)
    .option('--cluster', 'work on the Kubernetes cluster that kubectl is set to')
    .option('--kubeconfig <file>', 'work on the cluster of this kubeconfig')
    .option('--context <name>', 'work on the cluster of this context')
  return stateOption(command)
}

function gathered(value: string, before: string[]): string[] {
  return [...before, value]
}
