import type { SocksReason } from '../../relay/socks-error.ts'
import type { OnionKeyFault } from '../onion/files.ts'
import type { Explanation } from './reasons.ts'

/** Reasons that come from the reading of keys, from the agent's report, and from tor through it. */

type AgentReason =
  | 'AddressMismatch'
  | 'KeyInvalid'
  | 'TorRefused'
  | 'UploadRefused'
  | 'Queued'
  | 'TorNotRunning'
  | 'ProbeFailed'
  | 'DescriptorFound'
  | 'PageFailed'
  | 'TorExited'
  | 'OptionsRefused'
  | 'TorMissing'
  | 'TorTooOld'
  | 'TorUnusable'
  | 'RunFolderUnusable'
  | 'TransportMissing'
  | 'NetworkRefused'

const KEY = ['KeyValid']
const PUBLISHED = ['Published']
const REACHABLE = ['TargetsReachable']
/** Of a target, or of an onion of ours that another daemon looks at. */
const SEEN = [...REACHABLE, 'Reachable']
const HEALED = 'An onion of your own is published anew by itself: see its events, and docs/reachability.md.'
const TOR = ['TorBootstrapped']

export const AGENT_EXPLANATIONS: Readonly<Record<OnionKeyFault | AgentReason | SocksReason, Explanation>> = {
  KeyMissing: {
    conditions: [...KEY, ...PUBLISHED],
    means:
      'The Secret has no `hs_ed25519_secret_key`, or an empty one; or the daemon has not got the key yet.',
    next: 'Put the file of 96 bytes that tor or mkp224o wrote into the Secret.',
  },
  KeyWrongSize: {
    conditions: KEY,
    means: 'What the Secret holds is no key of an onion by its size.',
    next: 'Give the unchanged file `hs_ed25519_secret_key`, or base64 of it.',
  },
  KeyIsSeed: {
    conditions: KEY,
    means:
      'What the Secret holds is the seed of a key: tor keeps keys in another form, and a seed gives another address in other programs.',
    next: 'Let tor or mkp224o write the key, and give its file `hs_ed25519_secret_key`.',
  },
  KeyWrongHeader: {
    conditions: KEY,
    means: 'What the Secret holds is another kind of key: PEM, a public key, or a changed file.',
    next: 'Give the unchanged file `hs_ed25519_secret_key`.',
  },
  KeyNotClamped: {
    conditions: KEY,
    means:
      'These 64 bytes are no expanded secret key: tor would publish them under an address that nobody knows.',
    next: 'Give the unchanged file `hs_ed25519_secret_key`.',
  },
  PublicKeyMismatch: {
    conditions: KEY,
    means: '`hs_ed25519_public_key` does not belong to the secret key.',
    next: 'Give the files of one and the same onion, or leave the public key out.',
  },
  HostnameMismatch: {
    conditions: KEY,
    means: '`hostname` is not the address that the secret key makes.',
    next: 'Give the files of one and the same onion, or leave the host name out.',
  },
  KeyInvalid: {
    conditions: PUBLISHED,
    means:
      'The key that the daemon mounts cannot be read. The operator checked it before, so a file was changed on its way.',
    next: 'Delete the Secret `<daemon>-keys`: the operator makes it anew.',
  },
  AddressMismatch: {
    conditions: PUBLISHED,
    means:
      'tor made another address of the key than the one that was worked out, so the onion was removed at once.',
    next: 'Report it with the versions of Postern and tor: this must not happen.',
  },
  TorRefused: {
    conditions: PUBLISHED,
    means: 'tor did not take the onion; it is tried again, ever more rarely.',
    next: "The message has tor's words. See the log of the daemon's pod.",
  },
  UploadRefused: {
    conditions: PUBLISHED,
    means: 'A directory refused the descriptor; it is published anew if none takes it.',
    next: "Nothing at first. If it stays, check the clock of the daemon's node.",
  },
  Queued: {
    conditions: PUBLISHED,
    means: 'Older onions of this daemon are published first.',
    next: 'Nothing.',
  },
  TorNotRunning: {
    conditions: PUBLISHED,
    means: 'It is added as soon as tor runs.',
    next: 'See TorBootstrapped of the TorDaemon.',
  },
  ProbeFailed: {
    conditions: REACHABLE,
    means: 'The probe of a target ended without an answer of tor.',
    next: "The message says how. See the log of the daemon's pod.",
  },
  DescriptorFound: {
    conditions: ['Reachable'],
    means:
      'The onion is private, and the tor that looks has no key to it: it found the descriptor, and that is all that can be seen from outside.',
    next: 'Nothing.',
  },
  PageFailed: {
    conditions: ['Reachable'],
    means:
      'The onion was reached, and the page of `spec.probe.http` did not come, or came with HTTP status 500 or above. Tor is not to blame, so nothing is tried on its side.',
    next: "See the backend's log; check `spec.probe.http.path`, and that the first port speaks HTTP/1.1.",
  },
  TorExited: {
    conditions: TOR,
    means: 'tor ended, and is started again.',
    next: 'The message has its last warning. If it was killed, raise `spec.resources.limits.memory` of the TorDaemon.',
  },
  TransportMissing: {
    conditions: TOR,
    means: "The agent's image has no program for the transport of the bridges: tor stays off the network.",
    next: 'Choose a transport that the image has, such as obfs4, or an image with the program that the message names.',
  },
  NetworkRefused: {
    conditions: TOR,
    means:
      'tor does not take the bridges, or an option of the TorDaemon speaks against them: it stays off the network.',
    next: 'The message has the words of tor: correct `spec.options` (`EntryNodes` is one that does not go with bridges).',
  },
  OptionsRefused: {
    conditions: TOR,
    means:
      'tor does not take the options of the TorDaemon, and is not started without them: it might connect where you never wanted it to.',
    next: 'Correct `spec.options`: the message names the line.',
  },
  TorMissing: {
    conditions: TOR,
    means: 'There is no program tor.',
    next: "Use the image of this release for the daemons; on one machine install the package 'tor'.",
  },
  TorTooOld: {
    conditions: TOR,
    means: 'This tor is older than what the agent can work with.',
    next: "Use the image of this release for the daemons; on one machine update the package 'tor'.",
  },
  TorUnusable: {
    conditions: TOR,
    means: 'tor cannot be started.',
    next: 'The message has what it said.',
  },
  RunFolderUnusable: {
    conditions: TOR,
    means: 'The path of the folder for sockets is too long, or has characters that tor cannot have there.',
    next: 'On one machine: choose a shorter state folder.',
  },
  GeneralFailure: {
    conditions: REACHABLE,
    means: 'tor, or the service behind the onion, could not connect.',
    next: 'Check that the service listens on `port`; see the log of the daemon.',
  },
  NotAllowed: {
    conditions: REACHABLE,
    means: "tor's rules forbid the connection.",
    next: 'Check `spec.options` of the TorDaemon.',
  },
  NetworkUnreachable: {
    conditions: REACHABLE,
    means: 'tor has no way to the network.',
    next: 'See TorBootstrapped of the TorDaemon.',
  },
  HostUnreachable: {
    conditions: SEEN,
    means: 'The onion service did not answer.',
    next: `Check its address, and that it is up. ${HEALED}`,
  },
  ConnectionRefused: {
    conditions: SEEN,
    means: 'The onion service is there and serves nothing on this port.',
    next: `Correct \`spec.targets[].port\`. ${HEALED}`,
  },
  TtlExpired: {
    conditions: SEEN,
    means: 'The connection took too long.',
    next: `Nothing at first: it is probed again. ${HEALED}`,
  },
  CommandUnsupported: {
    conditions: REACHABLE,
    means: 'What answers at the SOCKS port is not tor.',
    next: 'Report it with the log of the daemon.',
  },
  AddressTypeUnsupported: {
    conditions: REACHABLE,
    means: 'What answers at the SOCKS port is not tor.',
    next: 'Report it with the log of the daemon.',
  },
  DescriptorNotFound: {
    conditions: SEEN,
    means: 'No directory knows the onion: its address is wrong, or it is not published now.',
    next: `Check the address; ask whoever runs the service whether it is up. ${HEALED}`,
  },
  DescriptorInvalid: {
    conditions: SEEN,
    means: 'The descriptor of the onion cannot be read.',
    next: `Whoever runs the service must publish it anew. ${HEALED}`,
  },
  IntroductionFailed: {
    conditions: SEEN,
    means: 'No introduction point of the onion answered.',
    next: `Check that the service is up; it is probed again. ${HEALED}`,
  },
  RendezvousFailed: {
    conditions: SEEN,
    means: 'The onion service did not come to the meeting point.',
    next: `Nothing at first: it is probed again. ${HEALED}`,
  },
  ClientAuthMissing: {
    conditions: SEEN,
    means: 'The onion service wants a client key.',
    next: `Put a key that its owner gave you into \`clientAuthSecret\` of the target. ${HEALED}`,
  },
  ClientAuthWrong: {
    conditions: SEEN,
    means: 'The onion service does not accept our client key.',
    next: `Ask whoever runs the service for a current one. ${HEALED}`,
  },
  AddressInvalid: {
    conditions: REACHABLE,
    means: 'The address is no v3 onion address; often a mistyped character.',
    next: 'Copy the address again in full.',
  },
  IntroductionTimedOut: {
    conditions: SEEN,
    means: 'The introduction points of the onion timed out.',
    next: `Nothing at first: it is probed again. ${HEALED}`,
  },
  UnknownReply: {
    conditions: REACHABLE,
    means: 'tor gave a reply that no standard knows.',
    next: 'Report it with the log of the daemon.',
  },
  AuthRejected: {
    conditions: REACHABLE,
    means: 'tor refused the way in which the agent signs in at its SOCKS port.',
    next: 'Check `spec.options` of the TorDaemon.',
  },
  ProtocolError: {
    conditions: REACHABLE,
    means: 'What answers at the SOCKS port is not tor.',
    next: 'Report it with the log of the daemon.',
  },
  ProxyClosed: {
    conditions: REACHABLE,
    means: 'tor closed the connection before its answer was complete; it may just have been started again.',
    next: 'Nothing at first: it is probed again.',
  },
  ProxyUnreachable: {
    conditions: REACHABLE,
    means: 'tor does not run.',
    next: 'See TorBootstrapped of the TorDaemon.',
  },
  TimedOut: {
    conditions: SEEN,
    means: 'tor gave no answer in time.',
    next: `Nothing at first: it is probed again. If it stays, see TorBootstrapped of the TorDaemon. ${HEALED}`,
  },
}
