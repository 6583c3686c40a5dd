/** Checks the unit files themselves. The appliance tests run them under systemd. */
import { readFileSync } from 'node:fs';
import t from 'tap';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The lines of a unit file without comments and section names. */
const directives = (text: string): string[] => text.split('\n').filter((line) => /^[^#\s]/.test(line));

t.test('the unit of a role equals the main one, except for its own names', async (t) => {
  const main = directives(read('systemd/edge-health.service'));
  const role = directives(read('systemd/edge-health@.service'));
  const own = role.filter((line) => line.includes('%i'));
  t.same(
    own.map((line) => line.split('=', 1)[0]),
    ['Description', 'ExecStart', 'ExecReload', 'SyslogIdentifier', 'RuntimeDirectory'],
  );
  const shared = (lines: string[]): string[] =>
    lines.filter((line) => !own.some((other) => other.split('=', 1)[0] === line.split('=', 1)[0]));
  // The scheduler has the configuration of the main service.
  const reload = 'PropagatesReloadTo=edge-health-ops.service';
  t.same([reload, ...shared(role)].sort(), shared(main).sort());
  t.ok(shared(main).length > 50, 'there is something to compare');
});

t.test('no unit waits for the network', async (t) => {
  for (const name of ['edge-health', 'edge-health@', 'edge-health-ops', 'edge-health-harness'])
    t.notMatch(directives(read(`systemd/${name}.service`)).join('\n'), /network/);
});

t.test('the harness and the service do not depend on each other', async (t) => {
  const harness = directives(read('systemd/edge-health-harness.service'));
  t.same(
    harness.filter((line) => /^(?:Requires|Requisite|Wants|BindsTo|PartOf|Upholds|PropagatesStopTo|StopPropagatedFrom)=/.test(line)),
    [],
  );
  t.notMatch(directives(read('systemd/edge-health.service')).join('\n'), /harness/);
});
