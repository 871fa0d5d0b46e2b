import type { ApiKind } from '../../cluster/api-kind.ts'
import { ONION_PROXY } from './onion-proxy.ts'
import { ONION_SERVICE } from './onion-service.ts'
import { TOR_DAEMON } from './tor-daemon.ts'

/** Every kind of this domain. */
export const TOR_KINDS: ApiKind[] = [ONION_SERVICE, ONION_PROXY, TOR_DAEMON]
