import { PosternError } from '../../core/errors.ts'

/** A mapping within a kubeconfig, and where it stands. */
export interface Section {
  file: string
  /** e.g. `users[admin].user`; empty at the top. */
  path: string
  value: Record<string, unknown>
}

export function at(section: Section): string {
  return section.path === '' ? section.file : `${section.file}: ${section.path}`
}

/** An error at a member; `fault` says what is wrong and what to do, and never what the value is. */
export function fail(section: Section, key: string, fault: string): PosternError {
  const path = section.path === '' ? key : `${section.path}.${key}`
  return new PosternError('KubeconfigInvalid', `${section.file}: ${path}: ${fault}`)
}

/** A string that is not empty; null and the empty string count as not set. */
export function text(section: Section, key: string): string | undefined {
  const value = section.value[key]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw fail(section, key, 'must be a string: quote it')
  return value
}

export function flag(section: Section, key: string): boolean {
  const value = section.value[key] ?? false
  if (typeof value !== 'boolean') throw fail(section, key, 'must be true or false')
  return value
}
