import { z } from 'zod'

/** `spec.onionLocation` of an OnionService: for the site of the same content on the open web. */
export const onionLocation: z.ZodType = z
  .strictObject({
    scheme: z
      .enum(['http', 'https'], { error: 'must be http or https' })
      .default('http')
      .describe(
        "Of the onion's address as visitors are sent there; default 'http', which an onion encrypts.",
      ),
  })
  .optional()
  .describe(
    'Makes the ConfigMap `<name>-location` with the Onion-Location header for the site on the open web, in the form of several web servers.',
  )

export interface OnionLocationSpec {
  scheme?: 'http' | 'https'
}
