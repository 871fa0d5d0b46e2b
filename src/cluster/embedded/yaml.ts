import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  Parser,
  type ScalarTag,
} from 'yaml'

export interface Position {
  line: number
  column: number
}

export interface YamlDocument {
  /** Plain JSON; undefined when the document is empty. */
  value: unknown
  /** Where a path stands, or the nearest thing above it that exists. */
  locate(path: readonly (string | number)[]): Position
}

export class YamlProblem extends Error {
  readonly position: Position | undefined

  constructor(message: string, position?: Position) {
    super(message)
    this.position = position
  }
}

/** Kubernetes reads YAML 1.1, where `0400` is octal; of the rest of 1.1 (`12:30`, dates) it takes nothing either. */
const OCTAL: ScalarTag = {
  tag: 'tag:yaml.org,2002:int',
  default: true,
  test: /^[-+]?0[0-7]+$/,
  resolve: (text) => Number.parseInt(text, 8),
}

/** More would only be there to blow up: an alias of aliases grows with every level. */
const MAX_ALIASES = 100

/**
 * The documents of a YAML or JSON text, one at a time, so that only one tree is in memory.
 *
 * @throws YamlProblem what is wrong, in words without the text itself (it may be a secret)
 */
export function* readYaml(text: string): Generator<YamlDocument> {
  const lines = new LineCounter()
  const parser = new Parser(lines.addNewLine)
  const composer = new Composer({
    prettyErrors: false,
    // Its warnings would quote the text.
    logLevel: 'silent',
    uniqueKeys: true,
    merge: true,
    customTags: (tags) => [OCTAL, ...tags],
  })
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  try {
    for (const document of composer.compose(parser.parse(text))) {
      const error = document.errors[0]
      if (error !== undefined) throw new YamlProblem(explain(error.code), at(error.pos[0]))
      yield {
        value: toPlain(document, at),
        locate: (path) => at(offsetOf(document, path)),
      }
    }
  } catch (error) {
    if (error instanceof RangeError) throw new YamlProblem('is nested too deeply: flatten it')
    throw error
  }
}

function toPlain(document: Document.Parsed, at: (offset: number) => Position): unknown {
  if (document.contents === null) return undefined
  if (isScalar(document.contents) && document.contents.value === null) return undefined
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES })
  } catch (error) {
    if (error instanceof ReferenceError) {
      const message = `has more than ${MAX_ALIASES} aliases, or one of an unknown anchor: write the values out`
      throw new YamlProblem(message, at(document.contents.range[0]))
    }
    if (error instanceof RangeError) throw error
    const message = 'has a merge (<<) or an alias that cannot be resolved: write the values out'
    throw new YamlProblem(message, at(document.contents.range[0]))
  }
}

function offsetOf(document: Document.Parsed, path: readonly (string | number)[]): number {
  let offset = document.contents?.range[0] ?? document.range[0]
  let node: unknown = document.contents
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document)
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => (isScalar(key) ? String(key.value) : key) === String(step))
      if (pair === undefined) break
      // The name's line, not the value's: a list starts one line below its name.
      offset = startOf(pair.key) ?? offset
      node = pair.value
    } else if (isSeq(node) && typeof step === 'number' && step < node.items.length) {
      node = node.items[step]
      offset = startOf(node) ?? offset
    } else {
      break
    }
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? (node as Node).range?.[0] : undefined
}

function explain(code: string): string {
  return MEANINGS[code] ?? 'is no valid YAML here: check this line and the one above'
}

const MEANINGS: Record<string, string> = {
  BAD_ALIAS: 'has an alias (*name) that does not work here: write the value out',
  BAD_INDENT: 'is indented wrongly: line it up with the fields it belongs to',
  BAD_SCALAR_START: 'has a value that starts with a reserved character: put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'has a field inside a value: put the value in quotes, or on a line of its own',
  BLOCK_IN_FLOW: 'mixes the indented style into {…} or […]: use one of the two',
  DUPLICATE_KEY: 'has this field twice in one object: remove one',
  IMPOSSIBLE: 'is no valid YAML here: check this line and the one above',
  MISSING_CHAR: 'lacks a character here: a closing quote, bracket, brace or comma',
  MULTILINE_IMPLICIT_KEY:
    'lacks a ":" after a field name, or has a value over several lines: put it in quotes',
  MULTIPLE_ANCHORS: 'has two anchors on one value: remove one',
  MULTIPLE_TAGS: 'has two tags on one value: remove one',
  NON_STRING_KEY: 'has a field name that is no text: put it in quotes',
  RESOURCE_EXHAUSTION: 'is nested too deeply: flatten it',
  TAB_AS_INDENT: 'is indented with a tab: use spaces',
  TAG_RESOLVE_FAILED: 'has a tag (!name) that is not known: remove it',
  UNEXPECTED_TOKEN: 'has something here that does not belong: put values with special characters in quotes',
}
