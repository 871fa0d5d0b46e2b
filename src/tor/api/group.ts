/** The API group of the tor kinds: existing users' manifests apply verbatim. */
export const TOR_API_VERSION = 'tor.fr0st.dev/v1alpha1'
/** Name of the daemon that is used, and made, where none is named. */
export const DEFAULT_DAEMON = 'tor'
