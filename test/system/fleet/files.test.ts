import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { FLEET, yaml } from '../../../testkit/ops/fleet-files.ts';

function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): { status: number | null; output: string } {
  const { error, status, stderr, stdout } = spawnSync(program, args, { encoding: 'utf8', env: { ...process.env, ...environment } });
  if (error) throw error;
  return { status, output: `${stdout}${stderr}` };
}

function copyOfFleet(t: Test): string {
  const folder = temporaryFolder(t);
  cpSync(FLEET, folder, { recursive: true });
  return folder;
}

interface ScrapeFile {
  readonly scrape_configs: readonly { readonly job_name: string; readonly relabel_configs: unknown }[];
}

t.test('promtool accepts prometheus.yml, also with the other discovery methods', async (t) => {
  const folder = join(copyOfFleet(t), 'prometheus');
  mkdirSync(join(folder, 'secrets'));
  writeFileSync(join(folder, 'secrets/edge-health.token'), '');
  t.match(run('promtool', ['check', 'config', join(folder, 'prometheus.yml')]), { status: 0 });
  const [files] = yaml<ScrapeFile>('prometheus/prometheus.yml').scrape_configs;
  for (const other of ['static', 'dns']) {
    const [job] = yaml<ScrapeFile>(`prometheus/discovery/${other}.yml`).scrape_configs;
    t.equal(job?.job_name, files?.job_name, `${other}.yml takes the place of that job`);
    if (other === 'static') t.same(job?.relabel_configs, files?.relabel_configs, 'with the same labels');
    writeFileSync(join(folder, `${other}.yml`), readFileSync(join(folder, `discovery/${other}.yml`)));
    const { output, status } = run('promtool', ['check', 'config', join(folder, `${other}.yml`)]);
    t.equal(status, 0, output);
  }
});

t.test('amtool accepts alertmanager.yml, and alerts are routed to the right receivers', async (t) => {
  const file = join(FLEET, 'alertmanager/alertmanager.yml');
  const checked = run('amtool', ['check-config', file]);
  t.equal(checked.status, 0, checked.output);
  t.match(checked.output, / 1 templates/);
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['on-call,teachers', ['severity=critical', 'room=lab-1']],
    ['teachers', ['severity=warning', 'room=lab-1']],
    ['on-call,workshop', ['severity=critical', 'room=workshop']],
    ['workshop', ['severity=warning', 'room=workshop']],
    ['on-call,discard', ['severity=critical', 'room=hall']],
    ['operators', ['severity=warning', 'room=hall']],
    ['operators', ['severity=warning']],
    ['discard', ['severity=info', 'room=lab-1']],
  ];
  for (const [receivers, labels] of cases) {
    const { output, status } = run('amtool', [
      'config',
      'routes',
      'test',
      `--config.file=${file}`,
      `--verify.receivers=${receivers}`,
      ...labels,
    ]);
    t.equal(status, 0, `${labels.join(' ')} → ${receivers}\n${output}`);
  }
  const text = readFileSync(file, 'utf8');
  t.notMatch(text, /(?:password|credentials|token|api_key):\s*\S/, 'no secret is in the file');
});

t.test('messages are readable', async (t) => {
  const folder = temporaryFolder(t);
  const alert = (status: string, instance: string) => ({
    status,
    labels: { alertname: 'EdgeHealthDown', severity: 'critical', instance, robot: instance, room: 'lab-1', site: 'campus' },
    annotations: {
      summary: `${instance} does not respond`,
      description: 'It has not responded for 2 minutes.',
      runbook_url: '/usr/share/doc/edge-health/fleet/runbook.md#edgehealthdown',
    },
    startsAt: '2026-03-01T10:00:00Z',
    endsAt: '2026-03-01T10:05:00Z',
  });
  const common = {
    receiver: 'on-call',
    externalURL: '',
    groupLabels: {},
    commonLabels: { alertname: 'EdgeHealthDown', severity: 'critical', room: 'lab-1', site: 'campus' },
  };
  const render = (template: string, data: object): string => {
    const file = join(folder, 'data.json');
    writeFileSync(file, JSON.stringify(data));
    const glob = join(FLEET, 'alertmanager/alertmanager_templates/*.tmpl');
    const { output, status } = run('amtool', [
      'template',
      'render',
      `--template.glob=${glob}`,
      `--template.text={{ template "${template}" . }}`,
      `--template.data=${file}`,
    ]);
    t.equal(status, 0, output);
    return output.trim();
  };
  const firing = { ...common, status: 'firing', commonAnnotations: {}, alerts: [alert('firing', 'robot-1'), alert('resolved', 'robot-2')] };
  t.equal(render('edge_health.subject', firing), '[1 critical] campus lab-1: EdgeHealthDown');
  t.equal(
    render('edge_health.subject', { ...firing, status: 'resolved', commonAnnotations: { summary: 'robot-2 does not respond' } }),
    '[resolved] campus lab-1: robot-2 does not respond',
  );
  t.equal(
    render('edge_health.text', firing),
    `CRITICAL  robot-1 does not respond
It has not responded for 2 minutes.
appliance: robot-1  robot: robot-1  room: lab-1  site: campus
since 2026-03-01 10:00:00 UTC; what to do: /usr/share/doc/edge-health/fleet/runbook.md#edgehealthdown

resolved  robot-2 does not respond
from 2026-03-01 10:00:00 to 2026-03-01 10:05:00 UTC`,
  );
});

/** The files of Debian's packages below /etc, as far as dpkg on this machine lists them. */
function debianLayout(t: Test): string {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'etc/prometheus'), { recursive: true });
  for (const file of ['prometheus.yml', 'alertmanager.yml']) cpSync(`/etc/prometheus/${file}`, join(folder, 'etc/prometheus', file));
  mkdirSync(join(folder, 'etc/default'));
  writeFileSync(join(folder, 'etc/default/prometheus-alertmanager'), '# Its arguments\nARGS=""\n');
  mkdirSync(join(folder, 'etc/grafana/provisioning'), { recursive: true });
  return folder;
}

/** Every file below a folder with its content, mode and time of modification. */
function everythingIn(folder: string): string[] {
  return globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mode, mtimeMs } = statSync(path);
      return `${path} ${mode.toString(8)} ${mtimeMs} ${readFileSync(path, 'utf8').length}`;
    })
    .sort();
}

t.test('install.sh installs every file where Debian expects it, once, and keeps files that were changed', async (t) => {
  const root = debianLayout(t);
  const etc = join(root, 'etc/prometheus');
  const script = join(FLEET, 'examples/systemd/install.sh');
  const first = run('sh', [script, '--root', root, '--runbooks', 'https://wiki.campus.example/fleet']);
  t.equal(first.status, 0, first.output);
  for (const file of ['prometheus.yml', 'alertmanager.yml']) t.ok(existsSync(join(etc, `${file}.debian`)), `Debian's ${file} is kept`);
  t.match(run('promtool', ['check', 'config', join(etc, 'prometheus.yml')]).output, /5 rule files found/);
  t.equal(run('amtool', ['check-config', join(etc, 'alertmanager.yml')]).status, 0);
  t.match(readFileSync(join(etc, 'rules/service.yml'), 'utf8'), /runbook_url: https:\/\/wiki\.campus\.example\/fleet#edgehealthdown$/m);
  t.match(readFileSync(join(root, 'etc/default/prometheus-alertmanager'), 'utf8'), /^ARGS="--cluster\.listen-address="$/m);
  t.same(readdirSync(join(root, 'etc/grafana/provisioning')).sort(), ['dashboards', 'datasources']);

  const before = everythingIn(root);
  const again = run('sh', [script, '--root', root, '--runbooks', 'https://wiki.campus.example/fleet']);
  t.match(again, { status: 0, output: /^nothing to do/ });
  t.same(everythingIn(root), before, 'a second run changes nothing');

  writeFileSync(join(etc, 'targets/robots.yml'), '- targets: [robot-1:5000]\n');
  writeFileSync(join(etc, 'prometheus.yml'), `${readFileSync(join(etc, 'prometheus.yml'), 'utf8')}# mine\n`);
  writeFileSync(join(etc, 'rules/machine.yml'), 'groups: []\n');
  const third = run('sh', [script, '--root', root]);
  t.match(third, { status: 0, output: /kept .*prometheus\.yml/ });
  t.match(readFileSync(join(etc, 'prometheus.yml'), 'utf8'), /# mine\n$/);
  t.equal(readFileSync(join(etc, 'targets/robots.yml'), 'utf8'), '- targets: [robot-1:5000]\n');
  t.equal(
    readFileSync(join(etc, 'rules/machine.yml'), 'utf8'),
    readFileSync(join(FLEET, 'prometheus/rules/machine.yml'), 'utf8'),
    'rules are ours',
  );

  t.notMatch(third.output, 'has no job');
  writeFileSync(join(etc, 'prometheus.yml'), 'scrape_configs: []\n');
  const ownConfiguration = run('sh', [script, '--root', root]);
  t.match(ownConfiguration, { status: 0, output: /next: .*prometheus\.yml has no job edge-health; / }, 'no robot would be scraped');

  writeFileSync(join(etc, 'alertmanager.yml'), 'route: {}\n');
  const wrong = run('sh', [script, '--root', root]);
  t.not(wrong.status, 0, 'what is wrong with the rest is reported');
  t.match(wrong.output, /alertmanager\.yml/);
  t.equal(run('sh', [script, '--nonsense']).status, 64);
});
