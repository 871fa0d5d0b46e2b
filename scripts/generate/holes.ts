import { Document, isMap, isScalar, visit } from 'yaml'

/** YAML of objects, with comments, and with holes where a chart's values go. */

/** A place of an object that a chart fills. */
export class Hole {
  /** Lines of the template in the place of `key: hole` or `- hole`, for the indent of that line. */
  readonly lines: (key: string, indent: string) => string[]

  constructor(lines: (key: string, indent: string) => string[]) {
    this.lines = lines
  }
}

/** A value that is an expression. */
export function inline(expression: string): Hole {
  return new Hole((key, indent) => [`${indent}${key}{{ ${expression} }}`])
}

/** A member that is there only where the value is not empty. */
export function optional(value: string): Hole {
  return new Hole((key, indent) => [
    `${indent}{{- with ${value} }}`,
    `${indent}${key}`.trimEnd(),
    `${indent}  {{- toYaml . | nindent ${indent.length + 2} }}`,
    `${indent}{{- end }}`,
  ])
}

/** A text that is there only where the value is not empty. */
export function optionalText(value: string): Hole {
  return new Hole((key, indent) => [
    `${indent}{{- with ${value} }}`,
    `${indent}${key}{{ . | quote }}`,
    `${indent}{{- end }}`,
  ])
}

/** A text of many lines. */
export function block(expression: string): Hole {
  return new Hole((key, indent) => [
    `${indent}${key}|`,
    `${indent}  {{- ${expression} | nindent ${indent.length + 2} }}`,
  ])
}

/** Members of a map from a named template: takes the place of a member, whose name does not count. */
export function included(template: string): Hole {
  return new Hole((_key, indent) => [`${indent}{{- include "${template}" $ | nindent ${indent.length} }}`])
}

/** Further members of a map, from a value: takes the place of a member, whose name does not count. */
export function furtherMembers(value: string): Hole {
  return new Hole((_key, indent) => [
    `${indent}{{- with ${value} }}`,
    `${indent}{{- toYaml . | nindent ${indent.length} }}`,
    `${indent}{{- end }}`,
  ])
}

/** List items by a template of their own. */
export function items(...lines: string[]): Hole {
  return new Hole((_key, indent) => lines.map((line) => `${indent}${line}`))
}

/** Member whose text becomes a comment above the object that it stands in. */
export const COMMENT = '#'
const WIDTH = 110

/** One document of YAML, with its holes as a template's text. */
export function yamlOf(object: object): string {
  const holes: Hole[] = []
  const plain = withTokens(object, holes)
  const document = new Document(plain, { aliasDuplicateObjects: false })
  visit(document, {
    Map(_key, map) {
      const comment = map.items.findIndex((pair) => isScalar(pair.key) && pair.key.value === COMMENT)
      if (comment < 0) return
      const [pair] = map.items.splice(comment, 1)
      if (isMap(map) && isScalar(pair?.value)) map.commentBefore = wrapped(String(pair.value.value))
    },
  })
  return document
    .toString({ lineWidth: 0, flowCollectionPadding: false })
    .split('\n')
    .flatMap((line) => {
      const match = /^(\s*)((?:- )?(?:[^\s:]+: )?)HOLE(\d+)$/.exec(line)
      return match === null ? [line] : holes[Number(match[3])]!.lines(match[2]!, match[1]!)
    })
    .join('\n')
}

/** Documents one after the other. */
export function yamlFile(objects: readonly object[], head: string = ''): string {
  return `${head}${objects.map(yamlOf).join('---\n')}`
}

function withTokens(value: unknown, holes: Hole[]): unknown {
  if (value instanceof Hole) return `HOLE${holes.push(value) - 1}`
  if (Array.isArray(value)) return value.map((item) => withTokens(item, holes))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([key, member]) => [key, withTokens(member, holes)]),
  )
}

function wrapped(text: string): string {
  const lines = ['']
  for (const word of text.split(' ')) {
    if (lines.at(-1)!.length + word.length > WIDTH - 10) lines.push('')
    lines[lines.length - 1] += ` ${word}`
  }
  return lines.join('\n')
}
