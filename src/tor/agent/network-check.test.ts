import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SILENT } from '../../core/logger.ts'
import { readCircuits } from '../control/circuits.ts'
import type { ControlMessage } from '../control/parser.ts'
import { NetworkCheck, waysOf } from './network-check.ts'

const relay = (letter: string): string => `$${letter.repeat(40)}~${letter.toLowerCase()}`
const WAY = ['A', 'B', 'C'].map((letter) => `$${letter.repeat(40)}`).join(',')
const STANDING = `7 BUILT ${['A', 'B', 'C', 'D'].map(relay).join(',')} PURPOSE=HS_VANGUARDS`

/** A tor that tells of its circuits by turns, and what it was asked to do. */
function tor(looks: string[]) {
  const asked: string[] = []
  const control = {
    async getInfo(): Promise<Record<string, string>> {
      return { 'circuit-status': looks.length > 1 ? looks.shift()! : looks[0]! }
    },
    async command(line: string): Promise<ControlMessage> {
      asked.push(line)
      return { status: 250, lines: [{ separator: ' ', text: 'EXTENDED 9' }] } as unknown as ControlMessage
    },
    async closeCircuit(id: string): Promise<void> {
      asked.push(`close ${id}`)
    },
  }
  const check = new NetworkCheck({ control: () => control, log: SILENT, timeoutMs: 300 })
  return { asked, check }
}

test('a tor that builds a circuit along a way that it has gets somewhere', async () => {
  const { asked, check } = tor([STANDING, `${STANDING}\n9 LAUNCHED`, `9 BUILT ${relay('A')}`])
  assert.equal(await check.works(), true)
  assert.deepEqual(asked, [`EXTENDCIRCUIT 0 ${WAY} purpose=controller`, 'close 9'])
  // What was found counts for a while.
  assert.equal(await check.works(), true)
  assert.equal(asked.length, 2)
})

test('a circuit that does not come about, or that nobody could begin, is no way', async () => {
  for (const looks of [[STANDING, `9 EXTENDED ${relay('A')}`], [STANDING, ''], [''], ['7 LAUNCHED']]) {
    assert.equal(await tor(looks).check.works(), false, JSON.stringify(looks))
  }
})

test('without a tor, or with one that refuses, nothing is known to work', async () => {
  assert.equal(await new NetworkCheck({ control: () => undefined, log: SILENT }).works(), false)
  const refusing = {
    getInfo: () => Promise.reject(new Error('no')),
    command: () => Promise.reject(new Error('no')),
    closeCircuit: () => Promise.reject(new Error('no')),
  }
  assert.equal(await new NetworkCheck({ control: () => refusing, log: SILENT }).works(), false)
})

test('ways are those of circuits that stand, each once, the newest first', () => {
  const other = ['D', 'B', 'C'].map(relay).join(',')
  const status = [
    STANDING,
    `8 BUILT ${['A', 'B', 'C'].map(relay).join(',')} PURPOSE=GENERAL`,
    `9 BUILT ${relay('A')} BUILD_FLAGS=ONEHOP_TUNNEL`,
    `10 EXTENDED ${['B', 'C', 'D'].map(relay).join(',')}`,
    `11 BUILT ${other}`,
    '12 BUILT nonsense,more,of',
  ]
  assert.deepEqual(waysOf(readCircuits(status.join('\n'))), [
    WAY.replace('A'.repeat(40), 'D'.repeat(40)),
    WAY,
  ])
})
