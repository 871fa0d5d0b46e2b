/** torrc options, in lower case, that a user may not set, each with the reason that the error names. */
export const REFUSED_OPTIONS: Readonly<Record<string, string>> = {
  controlport: 'Postern owns the control port',
  controlportwritetofile: 'Postern owns the control port',
  controlportfilegroupreadable: 'Postern owns the control port',
  controlsocket: 'Postern owns the control port',
  controlsocketsgroupwritable: 'Postern owns the control port',
  cookieauthentication: 'Postern owns the control port',
  cookieauthfile: 'Postern owns the control port',
  cookieauthfilegroupreadable: 'Postern owns the control port',
  hashedcontrolpassword: 'Postern owns the control port',
  publishhidservdescriptors: 'no onion would ever be published',
  fetchhidservdescriptors: 'no onion would ever be reached',
  fetchserverdescriptors: 'tor would never be connected',
  socksport: 'Postern owns the SOCKS ports; use spec.socks',
  sockspolicy: 'Postern owns the SOCKS ports; use spec.socks',
  unixsocksgroupwritable: 'Postern owns the SOCKS ports; use spec.socks',
  httptunnelport: 'Postern owns the ports of the daemon; use spec.httpConnect',
  transport: 'Postern owns the ports of the daemon; use spec.socks',
  dnsport: 'Postern owns the ports of the daemon',
  natdport: 'Postern owns the ports of the daemon',
  metricsport: 'Postern owns the ports of the daemon',
  metricsportpolicy: 'Postern owns the ports of the daemon',
  datadirectory: 'Postern lays out the volumes',
  cachedirectory: 'Postern lays out the volumes',
  keydirectory: 'Postern lays out the volumes',
  pidfile: 'Postern lays out the volumes',
  datadirectorygroupreadable: 'Postern lays out the volumes',
  cachedirectorygroupreadable: 'Postern lays out the volumes',
  keydirectorygroupreadable: 'Postern lays out the volumes',
  familykeydirectory: 'Postern lays out the volumes',
  clientonionauthdir: 'use clientAuthSecret of an OnionProxy',
  geoipfile: 'what it names, a key too, would be read into the log',
  geoipv6file: 'what it names, a key too, would be read into the log',
  guardfractionfile: 'what it names, a key too, would be read into the log',
  v3bandwidthsfile: 'what it names, a key too, would be read into the log',
  log: 'set logLevel instead',
  truncatelogfile: 'set logLevel instead',
  disablenetwork: 'Postern decides when tor may connect',
  dormantonfirststartup: 'Postern decides when tor may connect',
  user: 'the pod runs unprivileged',
  keepbindcapabilities: 'the pod runs unprivileged',
  disableallswap: 'the pod runs unprivileged',
  disabledebuggerattachment: "tor's memory holds the keys of onions",
  useentryguards: 'it would give away where the onion is served from',
  vanguardsliteenabled: 'it would give away where the onion is served from',
  enforcedistinctsubnets: 'it would give away where the onion is served from',
  runasdaemon: 'the agent supervises tor',
  sandbox: 'tor would die of the changes that Postern makes while it runs; the pod has a seccomp profile',
  safelogging: 'addresses of visitors would stand in the log',
  orport: 'the daemon is a client, not a relay',
  dirport: 'the daemon is a client, not a relay',
  dirportfrontpage: 'the daemon is a client, not a relay',
  extorport: 'the daemon is a client, not a relay',
  extorportcookieauthfile: 'the daemon is a client, not a relay',
  extorportcookieauthfilegroupreadable: 'the daemon is a client, not a relay',
  authoritativedirectory: 'the daemon is a client, not a relay',
  bridgeauthoritativedir: 'the daemon is a client, not a relay',
  v3authoritativedirectory: 'the daemon is a client, not a relay',
  versioningauthoritativedirectory: 'the daemon is a client, not a relay',
  bridgerelay: 'the daemon is a client, not a relay',
  exitrelay: 'the daemon is a client, not a relay',
  clientonly: 'the daemon is a client, not a relay',
  usebridges: 'bridges have fields of their own',
  bridge: 'bridges have fields of their own',
  clienttransportplugin: 'bridges have fields of their own',
  updatebridgesfromauthority: 'a daemon with bridges would connect to an authority directly',
  maxmeminqueues: 'it follows from resources.limits.memory',
  hiddenservicesinglehopmode: 'it would give away where the onion is served from',
  hiddenservicenonanonymousmode: 'it would give away where the onion is served from',
  include: 'the agent writes the whole configuration',
}

/** The same for whole families of options, by how they begin. */
export const REFUSED_PREFIXES: Readonly<Record<string, string>> = {
  hiddenservice: 'use an OnionService',
  accel: 'it would load a library into tor',
  servertransport: 'the daemon is a client, not a relay',
  serverdns: 'the daemon is a client, not a relay',
  __: 'it is internal to tor',
}

/** Why an option may not be set, or undefined where it may. */
export function refusedOption(name: string): string | undefined {
  const lower = name.toLowerCase()
  const prefix = Object.keys(REFUSED_PREFIXES).find((one) => lower.startsWith(one))
  const refused = REFUSED_OPTIONS[lower] ?? (prefix === undefined ? undefined : REFUSED_PREFIXES[prefix])
  if (refused !== undefined) return refused
  // tor takes the beginning of a name for the whole: `Bridg` sets Bridge.
  const whole = Object.entries({ ...REFUSED_OPTIONS, ...REFUSED_PREFIXES })
  return whole.find(([one]) => one.startsWith(lower))?.[1]
}

/** Options that tor takes only at its start: a change of one replaces the pod (config.c, *_IMMUTABLE). */
export const START_ONLY_OPTIONS: readonly string[] = ['TestingTorNetwork', 'NoExec']
