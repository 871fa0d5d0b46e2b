import { PosternError } from '../../core/errors.ts'

/** The peer does not speak the control protocol; the connection is of no further use. Code `ControlProtocol`. */
export class ControlProtocolError extends PosternError {
  override readonly name: string = 'ControlProtocolError'

  constructor(message: string, options?: { cause?: unknown }) {
    super('ControlProtocol', message, options)
  }
}

/**
 * tor refused a command. Code `ControlRefused`. Neither the message nor the text holds what was sent: a command
 * line may carry an onion's key.
 */
export class ControlError extends PosternError {
  override readonly name: string = 'ControlError'
  /** tor's three digits (control-spec, section 4), e.g. 552. */
  readonly status: number
  /** tor's own words, cleared of anything that looks like a key. */
  readonly text: string

  constructor(keyword: string, status: number, text: string) {
    const clean = redact(text)
    super('ControlRefused', `tor refused ${keyword}: ${status} ${clean}`)
    this.status = status
    this.text = clean
  }
}

/** A command's argument cannot be sent; nothing was sent. */
export function argumentError(message: string): PosternError {
  return new PosternError('ControlArgument', message)
}

/** tor quotes what it cannot parse, and so may give a key back. 80 characters of base64 are more than any name. */
function redact(text: string): string {
  return text
    .slice(0, 2000)
    .replace(/(ED25519-V3:|x25519:|cert=)[^\s"']+/gi, '$1[redacted]')
    .replace(/[A-Za-z0-9+/]{80,}={0,2}/g, '[redacted]')
    .replace(/[\x00-\x1f\x7f]/g, ' ')
}
