/** tor takes more clients, but a descriptor with over 340 keys exceeds its size and is silently never published. */
export const CLIENTS_LIMIT = 320

/** Onions of others that one daemon looks at: at one a second, each has its turn within a quarter of an hour. */
export const WATCH_LIMIT = 1_000

/** Seconds between two looks at an onion. */
export const WATCH_EVERY: Readonly<Record<'least' | 'most' | 'usual', number>> = {
  least: 10,
  most: 86_400,
  usual: 300,
}

/** Of a page that is asked for: printable, without blanks. */
export const PATH_PATTERN: RegExp = /^\/[!-~]{0,255}$/
