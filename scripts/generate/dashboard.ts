import { type Panel, type Query, ROWS, type State } from './panels.ts'

/** The dashboard as Grafana imports it (schema 39: Grafana 11 and newer, which bring older ones up themselves). */

const COLUMNS = 24
const DATASOURCE = { type: 'prometheus', uid: '$datasource' }
const HEIGHTS: Readonly<Record<Panel['type'], number>> = { stat: 4, timeseries: 8, table: 8 }

/** As it stands in `deploy/` and in the chart. */
export function dashboardFile(): string {
  return `${JSON.stringify(dashboard(), null, 2)}\n`
}

function dashboard(): object {
  return {
    uid: 'postern',
    title: 'Postern',
    description: 'Onions, bridges, proxies and the operator of Postern.',
    tags: ['postern', 'tor'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    annotations: { list: [] },
    links: [],
    templating: {
      list: [
        {
          name: 'datasource',
          label: 'Data source',
          type: 'datasource',
          query: 'prometheus',
          options: [],
          refresh: 1,
          regex: '',
          hide: 0,
          includeAll: false,
          multi: false,
        },
        variable('namespace', 'Namespace', 'label_values(tor_agent_bootstrapped, namespace)'),
        variable(
          'onion',
          'Onion',
          'label_values(tor_agent_onion_descriptor_age_seconds{namespace=~"$namespace"}, onion)',
        ),
      ],
    },
    panels: panels(),
  }
}

/** All by default, those without a value too. */
function variable(name: string, label: string, query: string): object {
  return {
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    query,
    allValue: '.*',
    includeAll: true,
    multi: true,
    current: { selected: true, text: ['All'], value: ['$__all'] },
    options: [],
    refresh: 2,
    regex: '',
    sort: 1,
    hide: 0,
  }
}

/** From left to right, and below when a row is full. */
function panels(): object[] {
  const all: object[] = []
  let y = 0
  for (const { title, panels } of ROWS) {
    const place = { x: 0, y, w: COLUMNS, h: 1 }
    all.push({ id: all.length + 1, type: 'row', title, collapsed: false, gridPos: place, panels: [] })
    y += 1
    let x = 0
    let height = 0
    for (const one of panels) {
      if (x + one.width > COLUMNS) {
        y += height
        x = height = 0
      }
      const h = HEIGHTS[one.type]
      all.push({ id: all.length + 1, gridPos: { x, y, w: one.width, h }, ...panel(one) })
      x += one.width
      height = Math.max(height, h)
    }
    y += height
  }
  return all
}

function panel(one: Panel): object {
  const { type, title, description, queries } = one
  return {
    type,
    title,
    description,
    datasource: DATASOURCE,
    targets: queries.map((query, index) => target(query, index, type)),
    fieldConfig: { defaults: defaults(one), overrides: overrides(one) },
    options: OPTIONS[type],
    ...(type === 'table' ? { transformations: transformations(one) } : {}),
  }
}

const refId = (index: number): string => String.fromCharCode('A'.charCodeAt(0) + index)

function target({ expression, legend }: Query, index: number, type: Panel['type']): object {
  return {
    refId: refId(index),
    datasource: DATASOURCE,
    expr: expression,
    legendFormat: legend,
    ...(type === 'timeseries'
      ? { range: true, instant: false }
      : { range: false, instant: true, format: type === 'table' ? 'table' : 'time_series' }),
  }
}

const LEGEND = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] }
const REDUCE = { calcs: ['lastNotNull'], fields: '', values: false }
const OPTIONS: Readonly<Record<Panel['type'], object>> = {
  stat: {
    reduceOptions: REDUCE,
    orientation: 'auto',
    textMode: 'value_and_name',
    colorMode: 'value',
    graphMode: 'none',
    justifyMode: 'auto',
  },
  timeseries: { legend: LEGEND, tooltip: { mode: 'multi', sort: 'desc' } },
  table: { showHeader: true, cellHeight: 'sm', footer: { show: false, reducer: [], fields: '' } },
}

function defaults({ type, unit, states }: Panel): object {
  return {
    ...(unit === undefined ? {} : { unit }),
    ...(states === undefined ? { color: color(type) } : stated(type, states)),
    ...(type === 'timeseries' ? { custom: lines(states !== undefined) } : {}),
  }
}

/** Colours are of numbers alone: a name has the colour of the lowest threshold. */
function overrides({ type, states }: Panel): object[] {
  if (type !== 'table' || states === undefined) return []
  const properties = [{ id: 'custom.cellOptions', value: { type: 'color-text' } }]
  return [{ matcher: { id: 'byType', options: 'number' }, properties }]
}

function color(type: Panel['type']): object {
  return type === 'timeseries' ? { mode: 'palette-classic' } : { mode: 'fixed', fixedColor: 'text' }
}

/** A state keeps its value until it changes: no slope between two of them. */
function lines(steps: boolean): object {
  return {
    drawStyle: 'line',
    lineInterpolation: steps ? 'stepAfter' : 'linear',
    lineWidth: 1,
    fillOpacity: steps ? 0 : 8,
    showPoints: 'auto',
    spanNulls: false,
  }
}

/** Lines of series are told apart by their colours, values elsewhere by theirs. */
function stated(type: Panel['type'], states: readonly State[]): object {
  const values = states.map(({ value }) => value)
  const ascending = [...states].sort((a, b) => a.value - b.value)
  return {
    min: Math.min(...values),
    max: Math.max(...values),
    color: { mode: type === 'timeseries' ? 'palette-classic' : 'thresholds' },
    mappings: [
      {
        type: 'value',
        options: Object.fromEntries(
          states.map(({ value, text, color }, index) => [String(value), { text, color, index }]),
        ),
      },
    ],
    thresholds: {
      mode: 'absolute',
      steps: ascending.map(({ value, color }, index) => ({ color, value: index === 0 ? null : value })),
    },
  }
}

/** One line for each set of labels, and one column for each query. */
function transformations({ queries, columns = [] }: Panel): object[] {
  const single = queries.length === 1
  const renamed = columns.map((name, index) => [single ? 'Value' : `Value #${refId(index)}`, name])
  return [
    { id: 'merge', options: {} },
    {
      id: 'organize',
      options: { excludeByName: { Time: true }, indexByName: {}, renameByName: Object.fromEntries(renamed) },
    },
  ]
}
