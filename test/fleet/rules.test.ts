import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { FLEET, familiesOf, queries, rules, yaml } from '../../testkit/ops/fleet-files.ts';
import { ROOT } from '../../testkit/service/service.ts';

// What promtool finds in the rules is tested in test/system/fleet/rules.test.ts.

const SEVERITIES = ['critical', 'warning', 'info'];
const alerts = rules().filter(({ alert }) => alert !== undefined);

t.test('every alert has a severity, a summary, a description and a section in the runbook', async (t) => {
  t.ok(alerts.length > 25, `${alerts.length} alerts`);
  const guide = readFileSync(join(ROOT, 'docs/fleet/runbook.md'), 'utf8');
  const headings = new Set(
    [...guide.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      (heading as string)
        .toLowerCase()
        .replaceAll(/[^a-z0-9 _-]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
  for (const { alert, annotations = {}, labels = {} } of alerts) {
    t.match(alert, /^EdgeHealth[A-Z]\w+$/);
    t.ok(SEVERITIES.includes(labels['severity'] ?? ''), `${alert}: severity`);
    t.match(annotations['summary'], /^.{10,100}$/, `${alert}: summary`);
    t.match(annotations['description'], /^.{30,}$/s, `${alert}: description`);
    const anchor = /^\/usr\/share\/doc\/edge-health\/fleet\/runbook\.md#(.+)$/.exec(annotations['runbook_url'] ?? '')?.[1];
    t.equal(anchor, alert?.toLowerCase(), `${alert}: its own section`);
    t.ok(headings.has(anchor ?? ''), `${alert} is in docs/fleet/runbook.md`);
  }
  t.equal(new Set(alerts.map(({ alert }) => alert)).size, alerts.length, 'no name twice');
});

t.test('recorded series are named level:metric:operation, and each of them is used', async (t) => {
  const recorded = rules().flatMap(({ record }) => record ?? []);
  const used = new Set([...rules(), ...queries()].flatMap(({ expr }) => familiesOf(expr)));
  t.ok(recorded.length > 8, `${recorded.length} recorded series`);
  for (const name of recorded) {
    t.match(name, /^[a-z_]+:edge_health_[a-z_]+:[a-z0-9_]+$/);
    t.ok(used.has(name), `${name} is used`);
  }
});

t.test('each alert has a unit test in which it fires, and one in which it does not', async (t) => {
  const tested = globSync('prometheus/tests/*.test.yml', { cwd: FLEET }).flatMap((file) =>
    yaml<{ tests: { alert_rule_test?: { alertname: string; exp_alerts: unknown[] }[] }[] }>(file).tests.flatMap(
      (test) => test.alert_rule_test ?? [],
    ),
  );
  for (const { alert } of alerts) {
    const cases = tested.filter(({ alertname }) => alertname === alert);
    t.ok(
      cases.some(({ exp_alerts }) => exp_alerts.length > 0),
      `${alert} fires`,
    );
    t.ok(
      cases.some(({ exp_alerts }) => exp_alerts.length === 0),
      `${alert} keeps still`,
    );
  }
});
