/** tor takes more clients, but a descriptor with over 340 keys exceeds its size and is silently never published. */
export const CLIENTS_LIMIT = 320
