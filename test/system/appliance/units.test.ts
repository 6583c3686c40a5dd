import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, SUITES } from '../../../testkit/container/images.ts';
import { builtPackage } from '../../../testkit/container/package.ts';

t.setTimeout(240_000);

const UNITS = ['edge-health', 'edge-health@sensor_node', 'edge-health-ops', 'edge-health-harness'] as const;
const HIGHEST_EXPOSURE = 2.0;
const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');

/** What `systemd-analyze security` reports about a unit: its overall figure, and the directives that are not set. */
async function exposure(machine: Container, unit: string): Promise<{ overall: number; open: string[] }> {
  const text = await machine.sh(`systemd-analyze security --no-pager ${unit}`);
  const overall = Number(/Overall exposure level for \S+: (\d+\.\d+)/.exec(text)?.[1]);
  // Some have a value in the name, RestrictAddressFamilies=~AF_UNIX; RootDirectory=/RootImage= are two.
  return { overall, open: [...text.matchAll(/^✗ (\S+)/gm)].map(([, name]) => (name ?? '').replace(/=.*/, '')) };
}

async function limits(t: Test, machine: Container): Promise<void> {
  const pid = await machine.show('edge-health', 'MainPID');
  t.equal(await machine.show('edge-health', 'OOMScoreAdjust'), '-500', 'it outlives what it watches');
  // If not even root may do that, as in some virtual machines, systemd continues without it.
  const mayLower = (await machine.run(['sh', '-c', 'echo -500 > /proc/self/oom_score_adj'])).code === 0;
  if (mayLower) t.equal(await machine.sh(`cat /proc/${pid}/oom_score_adj`), '-500');
  const text = await machine.read(`/proc/${pid}/limits`);
  t.match(text, /^Max core file size +0 +0 /m);
  t.match(text, /^Max open files +16384 +16384 /m);
  t.equal(await machine.show('edge-health', 'MemoryMax'), String(256 * 2 ** 20));
  t.equal(await machine.show('edge-health', 'TasksMax'), '256');
  t.equal(await machine.show('edge-health', 'WatchdogUSec'), '10s');
  t.match(
    await machine.sh(`ls -ld /var/lib/edge-health /run/edge-health; umask`),
    /^drwxr-xr-x.* \/run\/edge-health\ndrwxr-x---.* \/var\/lib\/edge-health\n/,
  );
}

async function reload(t: Test, machine: Container): Promise<void> {
  const file = '/etc/edge-health/edge_health_config.yaml';
  const pid = await machine.show('edge-health', 'MainPID');
  const config = await machine.read(file);
  await machine.systemctl('reload', 'edge-health');
  await machine.until(async () => (await machine.journal('edge-health')).includes('configuration reloaded'), 120);

  await machine.write(file, config.replace(/^ {4}critical: 90$/m, '    critical: 10'));
  const { code } = await machine.run(['systemctl', 'reload', 'edge-health']);
  t.not(code, 0, 'a file with errors is reported by the status of systemctl');
  await machine.until(async () => (await machine.journal('edge-health')).includes('not reloaded'), 120);
  const errors = (await machine.journal('edge-health')).match(/found warning 80, critical 10;/g);
  t.equal(errors?.length, 1, 'the command of ExecReload= does not repeat what the service has logged');
  t.equal(await machine.show('edge-health', 'MainPID'), pid, 'the same process goes on');
  t.equal(await machine.show('edge-health', 'ActiveState'), 'active');
  await machine.write(file, config);
  await machine.systemctl('reload', 'edge-health');
}

async function ros2(t: Test, machine: Container): Promise<void> {
  const setup = '/opt/ros/jazzy/setup.bash';
  const restarted = async (): Promise<string> => {
    await machine.systemctl('restart', 'edge-health');
    await machine.systemctl('reset-failed', 'edge-health');
    const pid = await machine.show('edge-health', 'MainPID');
    return machine.sh(`tr '\\0' '\\n' < /proc/${pid}/environ`);
  };
  await machine.write('/opt/ros/jazzy/share/ament_index/resource_index/packages/rcl', '');
  await machine.write(setup, 'export ROS_DISTRO=jazzy ROS_VERSION=2 AMENT_PREFIX_PATH=/opt/ros/jazzy LD_LIBRARY_PATH=/opt/ros/jazzy/lib\n');
  t.match(await restarted(), /^AMENT_PREFIX_PATH=\/opt\/ros\/jazzy$/m, 'ROS 2 is sourced');
  await machine.untilJson<{ ros: { transport: string; reason: string } }>(
    '/status',
    ({ ros }) => ros.transport === 'embedded' && /jazzy/.test(ros.reason),
  );

  await machine.write(setup, 'export ROS_DISTRO=jazzy; exit 1\n');
  t.notMatch(await restarted(), /^(AMENT|ROS_DISTRO)/m);
  const rosWarnings = async (): Promise<string[]> =>
    (await machine.journal('edge-health', '--priority=warning')).split('\n').filter((line) => line.includes('ROS 2:'));
  const warnings = await rosWarnings();
  t.match(warnings.join('\n'), 'ROS 2: sourcing /opt/ros/jazzy/setup.bash ended the shell with status 1; continuing without ROS 2');

  await machine.sh(`sed -i 's/^EDGE_HEALTH_ROS=.*/EDGE_HEALTH_ROS=none/; s/^#ROS_DOMAIN_ID=.*/ROS_DOMAIN_ID=42/' /etc/default/edge-health`);
  t.match(await restarted(), /^ROS_DOMAIN_ID=42$/m, 'the file for the environment counts');
  await machine.untilJson<{ ros: { domain_id: number } }>('/status', ({ ros }) => ros.domain_id === 42);
  t.same(await rosWarnings(), warnings, 'none says nothing');
}

/** The drop-ins of docs/operate/sandbox.md, in their order. */
function documentedDropIns(): string[] {
  return [...read('docs/operate/sandbox.md').matchAll(/^```ini\n([\s\S]*?)^```$/gm)].map(([, text]) => text ?? '');
}

async function dropIns(t: Test, machine: Container): Promise<void> {
  const file = '/etc/systemd/system/edge-health.service.d/override.conf';
  const config = '/etc/edge-health/edge_health_config.yaml';
  const before = await machine.read(config);
  /**
   * A check that must succeed with the drop-in that has this line, as root in the service's own mounts; and a configuration that needs it.
   */
  const effects: Record<string, { config?: string; check: string }> = {
    'ProtectHome=read-only': {
      config: 'disk:\n  paths: ["/home"]\n',
      check: `test -r /home/alice/notes && ! touch /home/alice/more && curl -s localhost:5000/health | grep -q '"disk_percent":[0-9]'`,
    },
    'AmbientCapabilities=CAP_NET_BIND_SERVICE': { config: 'rest:\n  port: 80\n', check: 'ss -Hltn | grep -q ":80 "' },
    'ReadWritePaths=-/srv/robot': {
      check: 'touch /srv/robot/file && grep -q "^Groups:.*[[:space:]]$(getent group dialout | cut -d: -f3) " /proc/$PID/status',
    },
  };
  await machine.sh('mkdir -p /srv/robot /home/alice; echo x > /home/alice/notes');
  const seen: string[] = [];
  for (const text of documentedDropIns()) {
    const name = text.split('\n').find((line) => line in effects);
    if (name !== undefined) seen.push(name);
    await machine.write(file, text);
    await machine.write(config, (name === undefined ? undefined : effects[name]?.config) ?? before);
    await machine.systemctl('daemon-reload');
    await machine.systemctl('restart', 'edge-health');
    await machine.systemctl('reset-failed', 'edge-health');
    const verified = await machine.run(['systemd-analyze', 'verify', '--man=no', 'edge-health.service']);
    t.match(verified, { code: 0, stderr: '' }, text.split('\n').slice(1).join(' '));
    const pid = await machine.show('edge-health', 'MainPID');
    const check = name === undefined ? 'true' : (effects[name]?.check ?? 'false');
    const { code, stderr } = await machine.run(['nsenter', '--target', pid, '--mount', 'env', `PID=${pid}`, 'sh', '-c', check]);
    t.equal(code, 0, `${name ?? 'it'} takes effect`, { stderr });
  }
  t.same(seen, Object.keys(effects), 'each was among them');
  await machine.sh(`rm ${file}; systemctl daemon-reload`);
  await machine.write(config, before);
  await machine.systemctl('restart', 'edge-health');
}

async function otherDisk(t: Test, machine: Container): Promise<void> {
  const config = '/etc/edge-health/edge_health_config.yaml';
  const before = await machine.read(config);
  const [dropIn = ''] = /(?<=```ini\n)[\s\S]*?(?=```)/.exec(read('docs/operate/storage.md').replaceAll(/^ {3}/gm, '')) ?? [];
  const isNamed = (text: string): boolean => text.includes('add ReadWritePaths=-/data/eh under [Service]');
  await machine.sh('install -d -o edge-health -g edge-health /data/eh');
  await machine.write(config, 'storage: {path: /data/eh}\nrest: {port: 5000}\nops: {notify: {webhook: {token_file: /root/token}}}\n');
  await machine.sh('echo secret > /root/token');
  const checked = await machine.sh('edge-health check-config');
  t.ok(isNamed(checked), checked);
  t.match(checked, /token_file: \/root\/token cannot be read by edge-health \(EACCES\)/, 'root can read it, the scheduler cannot');
  await machine.systemctl('restart', 'edge-health');
  await machine.untilJson<{ storage?: { error: string | null } }>('/status', ({ storage }) => isNamed(storage?.error ?? ''));
  t.ok(isNamed((await machine.run(['edge-health', 'ops', 'health_check'])).stdout), 'health_check');
  for (const unit of ['edge-health', 'edge-health-ops']) {
    await machine.sh(`mkdir -p /etc/systemd/system/${unit}.service.d`);
    await machine.write(`/etc/systemd/system/${unit}.service.d/data.conf`, dropIn);
  }
  await machine.systemctl('daemon-reload');
  await machine.systemctl('restart', 'edge-health');
  await machine.untilJson<{ storage?: { state: string; path: string } }>('/status', ({ storage }) => storage?.state === 'ok');
  t.notMatch(await machine.sh('edge-health check-config'), 'storage.path');
  await machine.write(config, 'storage: {path: /home/edge/data}\nrest: {port: 80}\n');
  const home = await machine.sh('edge-health check-config');
  t.match(home, 'add ProtectHome=read-only and ReadWritePaths=-/home/edge/data');
  t.match(home, /^note: rest\.port: the service may not listen on 80, .*AmbientCapabilities=CAP_NET_BIND_SERVICE/m);
  await machine.sh('rm /etc/systemd/system/edge-health*.service.d/data.conf; systemctl daemon-reload');
  await machine.write(config, before);
  await machine.systemctl('restart', 'edge-health');
}

for (const suite of SUITES) {
  t.test(`the units in ${suite}`, { skip: containersUnavailable() }, async (t) => {
    const { file } = await builtPackage();
    const machine = await Container.boot(t, { suite, installed: file });
    await machine.untilJson<{ status?: string }>('/health', ({ status }) => status !== undefined);

    await t.test('systemd-analyze verify reports nothing', async (t) => {
      const files = [
        ...UNITS.map((unit) => `${unit}.service`),
        'edge-health-stop.socket',
        'edge-health-stop@1.service',
        'edge-health-udp.socket',
        'edge-health-udp@1.service',
      ];
      const { code, stdout, stderr } = await machine.run(['systemd-analyze', 'verify', '--man=no', ...files]);
      t.match({ code, stdout, stderr }, { code: 0, stdout: '', stderr: '' });
    });

    await t.test(`their exposure is at most ${HIGHEST_EXPOSURE}, and every open directive has a reason`, async (t) => {
      const reasons = read('docs/operate/sandbox.md');
      for (const unit of [...UNITS, 'edge-health-stop@1', 'edge-health-udp@1']) {
        const { overall, open } = await exposure(machine, unit);
        t.ok(overall <= HIGHEST_EXPOSURE, `${unit}: ${overall}`);
        t.ok(open.length > 0);
        for (const name of open) t.ok(reasons.includes(`| \`${name}`), `docs/operate/sandbox.md says why ${name} is not set`);
      }
    });

    await t.test('limits are in force', (t) => limits(t, machine));
    await t.test('a reload applies the configuration', (t) => reload(t, machine));

    await t.test('a debugger listens after a SIGUSR1 of root, on the loopback interface only', async (t) => {
      const listening = async (): Promise<string[]> => (await machine.sh('ss -Hltn')).match(/\S+:9229\b/g) ?? [];
      const pid = await machine.show('edge-health', 'MainPID');
      t.same(await listening(), []);
      t.not((await machine.run(['sh', '-c', `kill -USR1 ${pid}`], { user: 'nobody' })).code, 0);
      await machine.sh(`kill -USR1 ${pid}`);
      await machine.until(async () => (await listening()).length > 0, 120);
      t.same(await listening(), ['127.0.0.1:9229']);
      t.equal(await machine.show('edge-health', 'MainPID'), pid, 'and the service goes on');
    });

    await t.test('a disk that the sandbox hides is not measured', async (t) => {
      const config = '/etc/edge-health/edge_health_config.yaml';
      const before = await machine.read(config);
      await machine.write(config, 'disk:\n  paths: ["/home"]\n');
      await machine.systemctl('restart', 'edge-health');
      t.equal((await machine.untilJson<{ disk_percent?: unknown }>('/health', (body) => 'disk_percent' in body)).disk_percent, null);
      await machine.untilJson('/status', (body) =>
        JSON.stringify(body).includes('/home: hidden from the service; allow it with ProtectHome='),
      );
      await machine.write(config, before);
      await machine.systemctl('restart', 'edge-health');
    });

    await t.test('ROS 2 is sourced if it exists, and never prevents a start', (t) => ros2(t, machine));

    await t.test('the drop-ins of the documentation work', (t) => dropIns(t, machine));

    await t.test('data on another disk needs the documented drop-in, which is named where it is missing', (t) => otherDisk(t, machine));

    await t.test('samples in memory survive a killed service, and systemd restores what is missing', async (t) => {
      await machine.sh('systemctl kill --kill-whom=main --signal=SIGKILL edge-health; systemctl stop edge-health');
      t.match(await machine.sh('ls -A /run/edge-health'), 'spool');
      await machine.sh('rm -r /run/edge-health; chown root:root /var/lib/edge-health; chmod 700 /var/lib/edge-health');
      await machine.systemctl('start', 'edge-health');
      t.match(await machine.sh(`stat -c '%U %a' /run/edge-health /var/lib/edge-health`), 'edge-health 755\nedge-health 750');
    });
  });
}
