import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'

export interface Answer {
  status: number
  body: string
}

/** One request on a connection of its own, for readiness probes and etcd's gateway. */
export function ask(
  url: string,
  options: { ca?: string; insecure?: boolean; body?: unknown; signal?: AbortSignal } = {},
): Promise<Answer> {
  const { ca, insecure = false, body, signal } = options
  const request = url.startsWith('https:') ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const asked = request(
      url,
      {
        agent: false,
        method: body === undefined ? 'GET' : 'POST',
        rejectUnauthorized: !insecure,
        timeout: 10_000,
        ...(ca === undefined ? {} : { ca }),
        ...(signal === undefined ? {} : { signal }),
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        )
      },
    )
    asked.on('timeout', () => asked.destroy(new Error(`${url} did not answer within 10 s`)))
    asked.on('error', reject)
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
