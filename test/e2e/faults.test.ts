import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ONION_SERVICE } from '../../src/tor/api/onion-service.ts'
import { TOR_DAEMON } from '../../src/tor/api/tor-daemon.ts'
import { sharedTorNetwork } from '../../testbed/tor-network/shared.ts'
import { backend, onionService, startUp, torDaemon, type Up, webServer } from './up.ts'
import { visitUntil } from './visit.ts'

const network = await sharedTorNetwork()

test('tor, the agent and up are killed: everything comes back at the same addresses', async () => {
  using server = await webServer('still here')
  await using up = startUp({
    'tor.yaml': torDaemon(network.options),
    'web.yaml': `${onionService('web')}---\n${onionService('two', {}, 'default', 'web')}---\n${backend('web', server.port)}`,
  })
  const host = await up.published('web')
  await up.published('two')
  await visitUntil(network.socksPort, host, 'still here')

  const tor = processes(up).find((one) => one.name === 'tor')!
  process.kill(tor.pid, 'SIGKILL')
  await up.until('tor to be noticed', () => up.condition(TOR_DAEMON, 'tor', 'Ready')?.status !== 'True')
  await recovered(up, tor.pid)
  await visitUntil(network.socksPort, host, 'still here')

  const agent = processes(up).find((one) => one.line.includes('tor/agent/main.ts'))!
  process.kill(agent.pid, 'SIGKILL')
  await up.until('the agent to be gone', () => !processes(up).some((one) => one.pid === agent.pid))
  await up.until('another agent', () => processes(up).some((one) => one.line.includes('tor/agent/main.ts')))
  await recovered(up, -1)
  await visitUntil(network.socksPort, host, 'still here')

  await up.kill()
  await up.until('no orphan to be left', () => processes(up).length === 0, 10_000)
  up.start()
  await up.until('the pod to be there', () => processes(up).some((one) => one.name === 'tor'))
  await recovered(up, -1)
  assert.equal(up.get(ONION_SERVICE, 'web')!.status!.hostname, host)
  await visitUntil(network.socksPort, host, 'still here')
})

test('60 onions at once are all published', async () => {
  const names = Array.from({ length: 60 }, (_, index) => `onion-${index}`)
  await using up = startUp({ 'tor.yaml': torDaemon(network.options) })
  await up.until('tor to be ready', () => up.condition(TOR_DAEMON, 'tor', 'Ready')?.status === 'True')
  up.write('many.yaml', names.map((name) => onionService(name)).join('---\n'))
  await up.until(
    'all 60 to be published',
    () => up.get(TOR_DAEMON, 'tor')?.status?.onionsPublished === 60,
    180_000,
  )
})

/** Both onions published by a tor that has just been started: the status may not be a stale one. */
async function recovered(up: Up, notPid: number): Promise<void> {
  await up.until('tor to run again', () =>
    processes(up).some((one) => one.name === 'tor' && one.pid !== notPid),
  )
  await up.until(
    'both onions to be published again',
    () =>
      up.get(TOR_DAEMON, 'tor')?.status?.onionsPublished === 2 &&
      up.condition(ONION_SERVICE, 'web', 'Published')?.status === 'True' &&
      up.condition(TOR_DAEMON, 'tor', 'Ready')?.status === 'True',
    120_000,
  )
}

/** What runs for this state folder, by its command line. */
function processes(up: Up): { pid: number; name: string; line: string }[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      try {
        const line = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ')
        const name = readFileSync(`/proc/${entry}/comm`, 'utf8').trim()
        const pid = Number(entry)
        if (!line.includes(`${up.state}/`) || pid === up.process.pid) return []
        return [{ pid, name, line }]
      } catch {
        return []
      }
    })
}
