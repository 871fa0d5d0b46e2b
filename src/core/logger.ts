/** The part of pino's logger that our code uses, so that a test can pass anything. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const SILENT: Logger = { debug() {}, info() {}, warn() {}, error() {} }
