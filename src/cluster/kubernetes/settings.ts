/** How an API server is reached and who we are to it; made by `kubeconfig.ts` and `in-cluster.ts`. */
export interface ConnectionSettings {
  /** Where this comes from, for messages: a file and its context, or the pod's service account. */
  source: string
  /** `https://host:port`, with a path where the server stands behind one. */
  server: string
  /** Of the context or the pod. */
  namespace: string
  tls: {
    /** Without it: the certificate authorities that Node.js trusts. */
    ca?: Pem
    /** Expected in the server's certificate instead of the host of `server`. */
    serverName?: string
    insecure: boolean
  }
  user: User
}

/** At most one of token, tokenFile and exec; a certificate goes with its key. */
export interface User {
  certificate?: Pem
  key?: Pem
  token?: string
  /** Read again as it changes. */
  tokenFile?: string
  exec?: ExecPlugin
}

/** PEM text, or a file of it that is read again as it changes. */
export type Pem = { where: string } & ({ file: string } | { text: string })

/** A program that prints credentials, as `users[].user.exec` declares it. */
export interface ExecPlugin {
  /** File and field, for messages. */
  where: string
  apiVersion: string
  command: string
  args: string[]
  env: { name: string; value: string }[]
  interactiveMode: 'Never' | 'IfAvailable' | 'Always'
  installHint?: string
  /** Told to the plug-in where it asks for it: `spec.cluster` of its ExecCredential. */
  cluster?: Record<string, unknown>
}
