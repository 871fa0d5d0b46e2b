import { REASON_EXPLANATIONS } from '../../src/tor/api/explanations.ts'
import type { Explanation } from '../../src/tor/api/reasons.ts'
import { CONDITIONS } from './reference.ts'

/** docs/troubleshooting.md: every reason of every condition, with what to do next. */

export function troubleshooting(): string {
  const reasons = Object.entries(REASON_EXPLANATIONS)
  const out = [
    '# Troubleshooting',
    '',
    'Made by `npm run generate` from the reasons in the sources.',
    '',
    'Each object says in its conditions what holds and what does not: `kubectl describe onionservice NAME`, or `postern describe onionservice NAME` on one machine. A condition has a reason (one word), and a message with the details and the next step. This page lists the reasons by condition. `Ready` has the reason of the first condition that is not True; so start with that one. A condition that is `Unknown` says that nothing current is known, never that all is well.',
  ]
  for (const [kind, types] of Object.entries(CONDITIONS)) {
    for (const type of types) {
      if (type === 'Ready') continue
      out.push('', `## ${kind}: ${type}`)
      const own = reasons.filter(([, { conditions }]) => conditions.includes(type))
      for (const [reason, explanation] of own) out.push(...section(reason, explanation, type))
    }
  }
  return `${out.join('\n')}\n`
}

function section(reason: string, { means, next }: Explanation, type: string): string[] {
  return ['', `### ${type}: ${reason}`, '', means, '', `Next step: ${next}`]
}
