/** torrc options, in lower case, that a user may not set, each with the reason that the error names. */
export const REFUSED_OPTIONS: Readonly<Record<string, string>> = {
  controlport: 'Postern owns the control port',
  controlsocket: 'Postern owns the control port',
  cookieauthentication: 'Postern owns the control port',
  cookieauthfile: 'Postern owns the control port',
  hashedcontrolpassword: 'Postern owns the control port',
  publishhidservdescriptors: 'no onion would ever be published',
  socksport: 'Postern owns the SOCKS ports; use an OnionProxy',
  sockspolicy: 'Postern owns the SOCKS ports; use an OnionProxy',
  httptunnelport: 'Postern owns the ports of the daemon; use an OnionProxy',
  transport: 'Postern owns the ports of the daemon; use an OnionProxy',
  transportport: 'Postern owns the ports of the daemon; use an OnionProxy',
  dnsport: 'Postern owns the ports of the daemon',
  natdport: 'Postern owns the ports of the daemon',
  metricsport: 'Postern owns the ports of the daemon',
  datadirectory: 'Postern lays out the volumes',
  cachedirectory: 'Postern lays out the volumes',
  keydirectory: 'Postern lays out the volumes',
  pidfile: 'Postern lays out the volumes',
  log: 'set logLevel instead',
  disablenetwork: 'Postern decides when tor may connect',
  user: 'the pod runs unprivileged',
  runasdaemon: 'the agent supervises tor',
  sandbox: 'tor would die of the changes that Postern makes while it runs; the pod has a seccomp profile',
  safelogging: 'addresses of visitors would stand in the log',
  orport: 'the daemon is a client, not a relay',
  dirport: 'the daemon is a client, not a relay',
  extorport: 'the daemon is a client, not a relay',
  bridgerelay: 'the daemon is a client, not a relay',
  exitrelay: 'the daemon is a client, not a relay',
  clientonly: 'the daemon is a client, not a relay',
  usebridges: 'bridges have fields of their own',
  bridge: 'bridges have fields of their own',
  clienttransportplugin: 'bridges have fields of their own',
  maxmeminqueues: 'it follows from resources.limits.memory',
  hiddenservicesinglehopmode: 'it would give away where the onion is served from',
  hiddenservicenonanonymousmode: 'it would give away where the onion is served from',
  include: 'the agent writes the whole configuration',
}

/** The same for whole families of options, by how they begin. */
export const REFUSED_PREFIXES: Readonly<Record<string, string>> = {
  hiddenservice: 'use an OnionService',
  __: 'it is internal to tor',
}

/** Why an option may not be set, or undefined where it may. */
export function refusedOption(name: string): string | undefined {
  const lower = name.toLowerCase()
  const prefix = Object.keys(REFUSED_PREFIXES).find((one) => lower.startsWith(one))
  return REFUSED_OPTIONS[lower] ?? (prefix === undefined ? undefined : REFUSED_PREFIXES[prefix])
}

/** Options that tor takes only at its start: a change of one replaces the pod (config.c, *_IMMUTABLE). */
export const START_ONLY_OPTIONS: readonly string[] = ['TestingTorNetwork', 'NoExec']
