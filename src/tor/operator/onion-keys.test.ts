import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Store } from '../../cluster/embedded/store.ts'
import type { Secret } from '../../cluster/kinds.ts'
import { refOf } from '../../core/resource.ts'
import type { OnionService } from '../api/onion-service.ts'
import { generateOnionKey } from '../onion/key.ts'
import { keySecret, retentionChange } from './onion-keys.ts'

test('a key that was made under Delete outlives its onion once that says Retain', () => {
  const folder = mkdtempSync(join(tmpdir(), 'keys-'))
  const store = new Store(folder)
  try {
    const onion = store.create(
      {
        apiVersion: 'tor.fr0st.dev/v1alpha1',
        kind: 'OnionService',
        metadata: { name: 'web', namespace: 'default' },
        spec: { ports: [], keyRetention: 'Delete' },
      },
      'user',
    ) as OnionService
    const made = keySecret(onion, generateOnionKey())
    store.create(made, 'postern/tor')
    const live = (): Secret => store.get(refOf(made)) as Secret
    const settle = (): void => {
      const change = retentionChange(onion, live())
      if (change !== undefined) store.apply(change, 'postern/tor')
      assert.equal(retentionChange(onion, live()), undefined)
    }
    settle()
    assert.equal(live().metadata.ownerReferences?.[0]?.uid, onion.metadata.uid)
    onion.spec.keyRetention = 'Retain'
    settle()
    store.remove(refOf(onion))
    assert.deepEqual(live()?.data, made.data)
  } finally {
    store.close()
    rmSync(folder, { recursive: true, force: true })
  }
})
