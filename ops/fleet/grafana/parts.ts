import type { Builder, Dataquery } from '@grafana/grafana-foundation-sdk/cog';
import * as common from '@grafana/grafana-foundation-sdk/common';
import {
  BigValueColorMode,
  BigValueGraphMode,
  ReduceDataOptionsBuilder,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  type DynamicConfigValue,
  MappingType,
  QueryVariableBuilder,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  type ValueMapping,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder, PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as Stat } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as Table } from '@grafana/grafana-foundation-sdk/table';
import { PanelBuilder as TimeSeries } from '@grafana/grafana-foundation-sdk/timeseries';

/** The Prometheus that the dashboard's variable `datasource` names. */
export const DATASOURCE = { type: 'prometheus', uid: '$datasource' };

const PALETTE = { good: 'green', notice: 'yellow', error: 'orange', unknown: 'purple', bad: 'red', gone: 'dark-red' } as const;

/** Names and colours of `instance_node:edge_health_state:level`. */
export const STATES: ValueMapping[] = [
  {
    type: MappingType.ValueToText,
    options: {
      0: { text: 'OK', color: PALETTE.good, index: 0 },
      1: { text: 'WARNING', color: PALETTE.notice, index: 1 },
      2: { text: 'ERROR', color: PALETTE.error, index: 2 },
      3: { text: 'CRITICAL', color: PALETTE.bad, index: 3 },
      4: { text: 'UNKNOWN', color: PALETTE.unknown, index: 4 },
      5: { text: 'DOWN', color: PALETTE.gone, index: 5 },
    },
  },
];

/** One colour a status, by the name of the series. */
export const STATUS_COLOURS = {
  OK: PALETTE.good,
  WARNING: PALETTE.notice,
  ERROR: PALETTE.error,
  CRITICAL: PALETTE.bad,
  UNKNOWN: PALETTE.unknown,
} as const;

/** Colours by value: green below the first step. */
export function steps(...above: readonly (readonly [number, keyof typeof PALETTE])[]): ThresholdsConfigBuilder {
  const list: Threshold[] = [{ value: null, color: PALETTE.good }, ...above.map(([value, name]) => ({ value, color: PALETTE[name] }))];
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(list);
}

/** Colours by value where much is good: red below the first step. */
export function rising(...above: readonly (readonly [number, keyof typeof PALETTE])[]): ThresholdsConfigBuilder {
  const list: Threshold[] = [{ value: null, color: PALETTE.bad }, ...above.map(([value, name]) => ({ value, color: PALETTE[name] }))];
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(list);
}

/** A curve for each series; `legend` is Grafana's template, such as {{node}}. */
export function curve(expr: string, legend: string): Builder<Dataquery> {
  return new DataqueryBuilder().datasource(DATASOURCE).expr(expr).legendFormat(legend).range();
}

/** The value now. */
export function now(expr: string, legend = ''): Builder<Dataquery> {
  return new DataqueryBuilder().datasource(DATASOURCE).expr(expr).legendFormat(legend).instant();
}

/** The values now as rows of a table, a column for each label; `refId` names the column of the value: `Value #A`. */
export function rows(refId: string, expr: string): Builder<Dataquery> {
  return new DataqueryBuilder().datasource(DATASOURCE).refId(refId).expr(expr).format(PromQueryFormat.Table).instant();
}

interface Sized {
  readonly title: string;
  readonly help: string;
  /** Of the 24 columns of a dashboard. */
  readonly width: number;
  readonly height?: number;
}

export function stat({ title, help, width, height = 4 }: Sized): Stat {
  return new Stat()
    .title(title)
    .description(help)
    .datasource(DATASOURCE)
    .span(width)
    .height(height)
    .colorMode(BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']));
}

export function chart({ title, help, width, height = 8 }: Sized): TimeSeries {
  return new TimeSeries()
    .title(title)
    .description(help)
    .datasource(DATASOURCE)
    .span(width)
    .height(height)
    .min(0)
    .lineWidth(1)
    .fillOpacity(5)
    .showPoints(common.VisibilityMode.Never)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(common.LegendDisplayMode.Table)
        .placement(common.LegendPlacement.Bottom)
        .showLegend(true)
        .calcs(['lastNotNull', 'max']),
    )
    .tooltip(new VizTooltipOptionsBuilder().mode(common.TooltipDisplayMode.Multi).sort(common.SortOrder.Descending));
}

/** Dashes for the limits among the curves. */
export const LIMIT: DynamicConfigValue[] = [
  { id: 'custom.lineStyle', value: { fill: 'dash', dash: [8, 8] } },
  { id: 'custom.fillOpacity', value: 0 },
  { id: 'color', value: { mode: 'fixed', fixedColor: PALETTE.bad } },
];

export function table({ title, help, width, height = 9 }: Sized): Table {
  return new Table().title(title).description(help).datasource(DATASOURCE).span(width).height(height).noValue('–');
}

/** One table of several `rows`: joined by their labels, the columns named and ordered as in `columns`, all others left out. */
export function joined(panel: Table, columns: Readonly<Record<string, string>>): Table {
  const names = Object.keys(columns);
  return panel.withTransformation({ id: 'merge', options: {} }).withTransformation({
    id: 'organize',
    options: {
      includeByName: Object.fromEntries(names.map((name) => [name, true])),
      indexByName: Object.fromEntries(names.map((name, index) => [name, index])),
      renameByName: columns,
      excludeByName: {},
    },
  });
}

/** A column whose cells are coloured by their value. */
export function coloured(unit: string, thresholds: ThresholdsConfigBuilder): DynamicConfigValue[] {
  return [
    { id: 'unit', value: unit },
    { id: 'decimals', value: 1 },
    { id: 'thresholds', value: thresholds.build() },
    { id: 'custom.cellOptions', value: { type: 'color-text' } },
  ];
}

/** A variable with the values that a label has; `of` is a selector, which may use the variables before it. */
export function choice(name: string, label: string, of: string, many: boolean): QueryVariableBuilder {
  const variable = new QueryVariableBuilder(name)
    .label(label)
    .datasource(DATASOURCE)
    .query({ query: `label_values(${of}, ${name})`, refId: name })
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.NaturalAsc)
    .multi(many)
    .includeAll(many);
  // .* takes in targets without the label as well.
  return many ? variable.allValue('.*').current({ text: ['All'], value: ['$__all'] }) : variable;
}

export function dashboard(title: string, uid: string, about: string): DashboardBuilder {
  return new DashboardBuilder(title)
    .uid(uid)
    .description(about)
    .tags(['edge-health'])
    .timezone('browser')
    .refresh('30s')
    .time({ from: 'now-6h', to: 'now' })
    .tooltip(DashboardCursorSync.Crosshair)
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'));
}
