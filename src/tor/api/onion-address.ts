import { z } from 'zod'
import { celString, withRules } from '../../cluster/cel.ts'
import { parseOnionAddress } from '../onion/address.ts'

/** The same words from both checks: what the parser says of an address like this one. */
function words(text: string): string {
  const parsed = parseOnionAddress(text)
  return parsed.ok ? '' : parsed.message
}

/** A host name as people write it: white space around it, capitals, subdomains, `.onion` left out. */
function form(label: string): string {
  return celString(`^\\s*(?i:([a-z0-9_-]{1,63}\\.)*${label}(\\.onion)?)\\s*$`)
}

/**
 * A v3 onion address. CEL sees its form and its version; a mistyped character is beyond it, since it has no SHA3: the
 * conditions of the object tell that one.
 */
export const onionAddressField: z.ZodString = withRules(
  z
    .string()
    .max(256, 'must be an onion address of 56 characters and .onion')
    .superRefine((text, context) => {
      const parsed = parseOnionAddress(text)
      if (!parsed.ok) context.addIssue({ code: 'custom', message: parsed.message })
    }),
  {
    rule: `self.matches(${form('[a-z2-7]{54}[aiqy]d')})`,
    messageExpression: [
      `self.matches(${form('[a-z2-7]{16}')}) ? ${celString(words('expyuzz4wqqyqhjn.onion'))}`,
      `self.matches(${form('[a-z2-7]{56}')}) ? 'Only version 3 of onion addresses exists (its last character is a d): copy it again in full'`,
      celString(words('not an address')),
    ].join(' : '),
  },
)
