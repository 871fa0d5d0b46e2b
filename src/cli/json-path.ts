import { PosternError } from '../core/errors.ts'

type Step = { member: string } | { index: number } | { where: string; equals: string }

/**
 * What stands at a path of an object. The part of JSONPath that printer columns of a CRD use: members `.a.b`,
 * indexes `[0]`, quoted members `['a.b']` or `.a\.b`, and filters `[?(@.type=="Ready")]` (first match).
 *
 * @throws PosternError `JsonPathInvalid`
 */
export function valueAt(object: unknown, path: string): unknown {
  let here = object
  for (const step of parse(path)) {
    if (here === null || typeof here !== 'object') return undefined
    if ('member' in step) {
      here = Object.hasOwn(here, step.member) ? (here as Record<string, unknown>)[step.member] : undefined
    } else if (!Array.isArray(here)) return undefined
    else if ('index' in step) here = here.at(step.index)
    else here = here.find((item) => valueAt(item, step.where) === step.equals)
  }
  return here
}

function parse(path: string): Step[] {
  const steps: Step[] = []
  let rest = path.replace(/^\{(.*)\}$/, '$1').replace(/^\$/, '')
  const take = (pattern: RegExp): RegExpExecArray | null => {
    const match = pattern.exec(rest)
    if (match !== null) rest = rest.slice(match[0].length)
    return match
  }
  while (rest !== '') {
    let match: RegExpExecArray | null
    if ((match = take(/^\.((?:\\.|[^.[\]\\])+)/))) steps.push({ member: match[1]!.replace(/\\(.)/g, '$1') })
    else if ((match = take(/^\[(-?\d+)\]/))) steps.push({ index: Number(match[1]) })
    else if ((match = take(/^\[(['"])(.*?)\1\]/))) steps.push({ member: match[2]! })
    else if ((match = take(/^\[\?\(@((?:\.[^.[\]=\s]+)+)\s*==\s*(['"])(.*?)\2\)\]/))) {
      steps.push({ where: match[1]!, equals: match[3]! })
    } else throw new PosternError('JsonPathInvalid', `cannot read the path '${path}' from '${rest}' on`)
  }
  return steps
}
