import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { reserveDomain } from '../../testkit/network/domain.ts';
import { dashboards, familiesOf, type Panel, queries, rules, yaml } from '../../testkit/ops/fleet-files.ts';
import { writeJobs } from '../../testkit/ops/ops-jobs.ts';
import { type StatusDocument, sendRequest, startIn } from '../../testkit/service/rest.ts';

// Whether the queries have data in a real Prometheus is tested in test/system/fleet/live.test.ts.

const COLUMNS = 24;
/** The unit of a chart or a figure by the end of the metric's name. */
const UNITS: readonly (readonly [name: RegExp, unit: string])[] = [
  [/_ratio$|:ratio$|_ratio:predict1d$|cpu_seconds:rate5m$/, 'percentunit'],
  [/_celsius$|_celsius:margin$/, 'celsius'],
  [/_bytes$/, 'bytes'],
  [/_hertz$/, 'hertz'],
];
/** Names in Grafana's query language that are no variables of the dashboard. */
const BUILT_IN = /^__/;

const known = dashboards();

/** Names of the columns or series of a panel; one with `{{` stands for whatever its label has. */
function seriesOf({ targets = [], transformations = [] }: Panel): string[] {
  const columns = transformations.flatMap(({ options }) => Object.values(options.renameByName ?? {}));
  return [...columns, ...targets.flatMap(({ legendFormat }) => legendFormat ?? [])];
}

t.test('every dashboard has its uid, and every link and variable has a target', async (t) => {
  t.same(known.map(({ uid }) => uid).sort(), ['edge-health-fleet', 'edge-health-robot']);
  const links = [...JSON.stringify(known).matchAll(/"\/d\/([\w-]+)/g)].map(([, uid]) => uid);
  t.ok(links.length > 1);
  t.same(
    links.filter((uid) => !known.some((dashboard) => dashboard.uid === uid)),
    [],
    'every linked dashboard exists',
  );
  for (const dashboard of known) {
    const { annotations, panels, templating, title } = dashboard;
    const [datasource, ...others] = templating.list;
    t.match(datasource, { name: 'datasource', type: 'datasource', query: 'prometheus' }, `${title}: works with any Prometheus`);
    const variables = new Set(templating.list.map(({ name }) => name));
    const named = [...JSON.stringify({ panels, annotations, others }).matchAll(/\$\{?(\w+)/g)].map(([, name]) => name as string);
    t.same(
      [...new Set(named)].filter((name) => !variables.has(name) && !BUILT_IN.test(name)),
      [],
      `${title}: every variable exists`,
    );
    for (const { datasource: of, name, query } of others) {
      t.equal(of?.uid, '$datasource', `${title}: ${name}`);
      t.match(typeof query === 'string' ? query : query.query, /^label_values\(up\{job="edge-health".*\}, \w+\)$/);
    }
    for (const { datasource: of } of annotations.list ?? []) t.equal(of.uid, '$datasource');
  }
  const { providers } = yaml<{ providers: { type: string; options: { path: string } }[] }>(
    'grafana/provisioning/dashboards/edge-health.yml',
  );
  t.match(
    providers,
    [{ type: 'file', options: { path: '/usr/share/edge-health/fleet/grafana/dashboards' } }],
    'where the package has them',
  );
});

t.test('every panel has an id and a position of its own, a description, and one letter for each query', async (t) => {
  for (const { panels, title } of known) {
    t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, `${title}: every panel has an id of its own`);
    const taken = new Set<string>();
    for (const { datasource, description, gridPos, targets = [], title: panel, type } of panels) {
      const { h, w, x, y } = gridPos;
      t.ok(x >= 0 && w > 0 && h > 0 && x + w <= COLUMNS, `${title}: ${panel} is within ${COLUMNS} columns`);
      const cells = Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`);
      t.notOk(
        cells.some((cell) => taken.has(cell)),
        `${title}: ${panel} covers no other panel`,
      );
      for (const cell of cells) taken.add(cell);
      if (type === 'row') continue;
      t.match(description, /^[A-Z].*\.$/, `${title}: ${panel} has a description`);
      t.equal(datasource?.uid, '$datasource');
      t.ok(targets.length > 0, `${title}: ${panel} has a query`);
      t.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, `${title}: ${panel}: every query has a letter`);
      for (const { datasource: of, refId } of targets) {
        t.match(refId, /^[A-Z]$/);
        t.equal(of.uid, '$datasource');
      }
    }
  }
});

t.test('units are those of the metrics, and overrides apply to series that exist', async (t) => {
  let checked = 0;
  for (const { panels, title } of known) {
    for (const panel of panels) {
      const unit = panel.fieldConfig?.defaults.unit;
      const series = seriesOf(panel);
      if (panel.type === 'timeseries' || panel.type === 'stat') {
        const [family = ''] = familiesOf(panel.targets?.[0]?.expr ?? '');
        const wanted = UNITS.find(([name]) => name.test(family))?.[1];
        if (wanted === undefined) continue;
        t.equal(unit, wanted, `${title}: ${panel.title}`);
        checked += 1;
      }
      for (const { matcher } of panel.fieldConfig?.overrides ?? []) {
        const matches = (name: string): boolean =>
          matcher.id === 'byName' ? name === matcher.options : new RegExp(matcher.options).test(name);
        t.ok(
          series.some((name) => name.includes('{{') || matches(name)),
          `${title}: ${panel.title} has ${matcher.options}`,
        );
      }
      for (const { displayName } of panel.options?.sortBy ?? []) t.ok(series.includes(displayName), `${title}: ${displayName} is a column`);
    }
  }
  t.ok(checked > 10, `${checked} panels`);
});

t.test('every metric of dashboards and rules is in /metrics, a recorded series, or one of Prometheus', async (t) => {
  const ros = { transport: 'embedded', discovery_range: 'LOCALHOST', domain_id: await reserveDomain(t) };
  const served = new Set<string>();
  // One reports undervoltage, the other one throttling.
  for (const [name, config] of Object.entries({ pi5: { ros }, 'intel-nuc': {} })) {
    const folder = temporaryFolder(t);
    const { procRoot, sysRoot } = new MachineTree(t, name);
    const options = { config: { ...config, publish_frequency: 10 }, arguments: ['--proc', procRoot, '--sys', sysRoot] };
    const service = await startIn(t, folder, options);
    writeJobs(folder);
    const isComplete = ({ host, ops, publish }: StatusDocument): boolean =>
      host !== null && ops !== null && publish.measured_hertz !== null;
    await service.until<StatusDocument>('/status', isComplete);
    const { body } = await sendRequest(service, 'GET', '/metrics');
    for (const [, family] of body.matchAll(/^# HELP (\w+) /gm)) served.add(family as string);
  }
  const recorded = rules().flatMap(({ record }) => record ?? []);
  t.ok(served.size > 40, `${served.size} families`);
  const existing = new Set([...served, ...recorded]);
  const used = [...queries(), ...rules()].flatMap(({ expr }) => familiesOf(expr));
  t.ok(used.length > 100, `${used.length} names`);
  t.same([...new Set(used)].filter((name) => !existing.has(name) && !name.startsWith('prometheus_')).sort(), []);
});
