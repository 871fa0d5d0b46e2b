import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PosternError } from '../core/errors.ts'
import { Exit, errorText, exitCodeOf, UsageError } from './errors.ts'
import { requireProgram, searchPath } from './programs.ts'
import { requireFolder, requireState, stateFolder } from './state.ts'

test('each sort of failure has its exit code', () => {
  const cases: [unknown, number][] = [
    [new UsageError('x'), Exit.usage],
    [new PosternError('StateNotFound', 'x'), Exit.notFound],
    [new PosternError('NotFound', 'x'), Exit.notFound],
    [new PosternError('StateInUse', 'x'), Exit.busy],
    [new PosternError('ProgramMissing', 'x'), Exit.missing],
    [new PosternError('StatePathTooLong', 'x'), Exit.usage],
    [new PosternError('LeadershipLost', 'x'), Exit.leadershipLost],
    [new PosternError('KubeconfigInvalid', 'x'), Exit.usage],
    [new Error('x'), Exit.failed],
    ['x', Exit.failed],
  ]
  for (const [error, code] of cases) assert.equal(exitCodeOf(error), code)
})

test('an error is one line, and has its stack only where that is asked for', () => {
  assert.equal(errorText(new Error('no'), false), 'postern: no')
  assert.match(errorText(new Error('no'), true), /^postern: no\nError: no\n {4}at /)
})

test('what is missing is said with the next step', () => {
  assert.throws(() => requireFolder('/does/not/exist'), /does not exist: create it/)
  assert.throws(() => requireFolder(import.meta.filename), /is not a folder/)
  assert.throws(() => requireState('/does/not/exist'), /start 'postern up FOLDER' first/)
  assert.throws(() => requireProgram('no-such-program', 'some-package'), /sudo apt-get install some-package/)
  assert.match(requireProgram('sh', 'dash'), /\/sh$/)
})

test('the state folder is the option, the variable, then the place that XDG names', () => {
  assert.equal(stateFolder('/a', { POSTERN_STATE: '/b' }), '/a')
  assert.equal(stateFolder(undefined, { POSTERN_STATE: '/b', XDG_STATE_HOME: '/c' }), '/b')
  assert.equal(stateFolder(undefined, { XDG_STATE_HOME: '/c' }), '/c/postern')
  assert.match(stateFolder(undefined, { XDG_STATE_HOME: 'relative' }), /\/\.local\/state\/postern$/)
})

test("daemons' folders stand behind the search path, once", () => {
  assert.equal(searchPath('/bin:/usr/sbin'), '/bin:/usr/sbin:/usr/local/sbin:/sbin')
})
