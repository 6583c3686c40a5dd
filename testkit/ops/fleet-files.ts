/** The shipped Prometheus rules and Grafana dashboards for a fleet (ops/fleet). Used by test/fleet and test/system/fleet. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../service/service.ts';

export const FLEET = join(ROOT, 'ops/fleet');

export interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

export function yaml<T>(path: string): T {
  return parse(readFileSync(join(FLEET, path), 'utf8'), { merge: true }) as T;
}

/** Every rule of prometheus/rules; throws if there are none, so that no test passes without a rule. */
export function rules(): Rule[] {
  const files = globSync('prometheus/rules/*.yml', { cwd: FLEET });
  const found = files.flatMap((file) => yaml<{ groups: { rules: Rule[] }[] }>(file).groups.flatMap((group) => group.rules));
  if (found.length === 0) throw new Error(`no rule in ${FLEET}/prometheus/rules`);
  return found;
}

interface DataSource {
  readonly uid: string;
}

export interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly datasource?: DataSource;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string };
    readonly overrides: readonly { readonly matcher: { readonly id: string; readonly options: string } }[];
  };
  readonly options?: { readonly sortBy?: readonly { readonly displayName: string }[] };
  readonly targets?: readonly {
    readonly expr: string;
    readonly refId: string;
    readonly legendFormat?: string;
    readonly datasource: DataSource;
  }[];
  readonly transformations?: readonly { readonly options: { readonly renameByName?: Readonly<Record<string, string>> } }[];
}

interface Variable {
  readonly name: string;
  readonly type: string;
  readonly query: string | { readonly query: string };
  readonly datasource?: DataSource;
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list?: readonly { readonly expr?: string; readonly datasource: DataSource }[] };
  readonly templating: { readonly list: readonly Variable[] };
}

export function dashboards(): Dashboard[] {
  const files = globSync('grafana/dashboards/*.json', { cwd: FLEET });
  if (files.length === 0) throw new Error(`no dashboard in ${FLEET}/grafana/dashboards`);
  return files.map((file) => JSON.parse(readFileSync(join(FLEET, file), 'utf8')) as Dashboard);
}

export interface Query {
  readonly where: string;
  readonly expr: string;
}

/** Every query of the dashboards, with its variables. */
export function queries(): Query[] {
  return dashboards().flatMap(({ title, panels, annotations }) => [
    ...panels.flatMap((panel) => (panel.targets ?? []).map(({ expr, refId }) => ({ where: `${title}: ${panel.title} ${refId}`, expr }))),
    ...(annotations.list ?? []).flatMap(({ expr }) => (expr === undefined ? [] : [{ where: `${title}: annotation`, expr }])),
  ]);
}

/** A query with its variables replaced in the same way as by Grafana, for one appliance and every site and room. */
export function filledIn(expr: string, instance: string): string {
  return expr
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$instance', instance)
    .replaceAll(/\$(site|room)/g, '.*');
}

/** The metric families in an expression, including Prometheus' own metrics and recorded series. */
export function familiesOf(expr: string): string[] {
  return [...expr.replaceAll(/"[^"]*"/g, '""').matchAll(/\b(?:(?:[a-z_]+:)?edge_health_|prometheus_)[a-z0-9_]+(?::[a-z0-9_]+)?\b/g)].map(
    ([name]) => name,
  );
}
