import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import t, { type Test } from 'tap';
import type { StatusDocument } from '../../../src/http/api/schema.ts';
import { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable, SUITES, type Suite } from '../../../testkit/container/images.ts';
import { builtPackage } from '../../../testkit/container/package.ts';
import { peersUnavailable } from '../../../testkit/dds/peers.ts';
import { ShutdownClient, sharedProgram } from '../../../testkit/dds/shutdown-client.ts';
import { Network } from '../../../testkit/network/network.ts';
import { callSafeShutdown, holdLock, logIn, whenSaid } from './support/power.ts';

// A program on DDS requests a shutdown, and a whole machine powers off, or does not.

t.jobs = 2;
t.setTimeout(600_000);
const skip = containersUnavailable() || peersUnavailable();

const CONFIG = '/etc/edge-health/edge_health_config.yaml';
const HOOKS = '/etc/edge-health/shutdown.d';
const STATE = '/var/lib/edge-health';
/** The first hook waits for this file. */
const GO = `${STATE}/go`;
const NOBODY = 65_534;
const NODE = '/usr/lib/edge-health/runtime/bin/node';
/** Prints what is read from a socket, or why that is not possible. */
const READ_TABLE = `
  const socket = require('node:net').connect(process.argv[1]);
  socket.on('data', (text) => process.stdout.write(text)).on('error', ({ code }) => process.stdout.write(code));`;
/** A client on Cyclone DDS calls one machine, a client on Fast DDS the other. */
const VENDOR = { bookworm: 'cyclone', trixie: 'fastdds' } as const satisfies Record<Suite, string>;

/** Sets keys of safe_shutdown, and reloads the service. */
async function configure(machine: Container, keys: Readonly<Record<string, string>>): Promise<void> {
  const edits = Object.entries(keys).map(([key, value]) => `-e 's|^  #\\? \\?${key}:.*|  ${key}: ${value}|'`);
  await machine.sh(`sed -i ${edits.join(' ')} ${CONFIG}; grep '^  [a-z_]*:' ${CONFIG} >/dev/null; systemctl restart edge-health`);
  await machine.untilJson<StatusDocument>('/status', ({ ros }) => ros.transport === 'embedded');
}

/** A unit that records its end in the same file as the hooks. */
const unit = (stop: string, seconds: number): string =>
  `[Service]\nExecStart=/bin/sleep infinity\nExecStop=/bin/sh -c '${stop}'\nTimeoutStopSec=${seconds}\n[Install]\nWantedBy=multi-user.target\n`;

/** Checks the store of a machine that is off: intact, closed, and with the request in it. */
async function checkStore(t: Test, machine: Container): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-health-store-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  await machine.copyOut(STATE, folder);
  t.notOk(existsSync(join(folder, 'edge-health.db-wal')), 'the database was closed');
  const db = new DatabaseSync(join(folder, 'edge-health.db'), { readOnly: true });
  t.same({ ...db.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' });
  const { document } = db.prepare('SELECT document FROM shutdown_request WHERE accepted ORDER BY request_id DESC').get() as {
    document: string;
  };
  t.match(JSON.parse(document), { outcome: 'completed', step: 'power', action: 'poweroff' });
  db.close();
}

/** Seconds until the machine has powered itself off. */
async function secondsToEnd(machine: Container): Promise<number> {
  const start = performance.now();
  const ending = await machine.waitForEnd(180);
  if (ending !== 'powered off') throw new Error(`the machine is ${ending ?? 'still up'}`);
  return (performance.now() - start) / 1000;
}

/** Checks, after the next boot, the samples up to the end of the service. */
async function checkSamples(t: Test, machine: Container): Promise<void> {
  const endMs = await whenSaid(machine, 'edge-health', /^received SIGTERM, shutting down/);
  const range = `from=${new Date(endMs - 60_000).toISOString()}&to=${new Date(endMs + 1000).toISOString()}`;
  const { data } = await machine.json<{ data: { timestamp: string }[] }>(`/health/history?${range}&order=desc&limit=1`);
  t.equal(data.length, 1, 'the samples of its last minute are stored');
  t.comment(`the last sample is ${endMs - Date.parse(data[0]?.timestamp ?? '')} ms older than the end of the service`);
}

const status = async (machine: Container): Promise<StatusDocument['shutdown']> =>
  (await machine.untilJson<StatusDocument>('/status', ({ shutdown }) => shutdown !== undefined)).shutdown;

for (const suite of SUITES) {
  t.test(`${suite}: refused, the machine stays up; accepted, it powers off and reports that after the next boot`, { skip }, async (t) => {
    const network = new Network();
    t.teardown(() => network.dispose());
    const segment = network.segment();
    const [host, stranger] = [network.host(), network.host()];
    segment.attach(host);
    segment.attach(stranger);
    const machine = await Container.boot(t, { suite, installed: (await builtPackage()).file, host });
    const call = (...request: [reason: string, requestedBy: string, timeout: number | string]): ReturnType<typeof callSafeShutdown> =>
      callSafeShutdown(host, VENDOR[suite], ...request);

    await machine.write('/etc/systemd/system/camera.service', unit(`echo camera stopped >> ${STATE}/order`, 10));
    await machine.write(
      `${HOOKS}/10-park`,
      `#!/bin/sh\necho "park for $EDGE_HEALTH_SHUTDOWN_REASON" >> ${STATE}/order\nwhile [ ! -e ${GO} ]; do sleep 0.1; done\n`,
      '755',
    );
    await machine.write(`${HOOKS}/20-save`, `#!/bin/sh\necho "save as $(id -un)" >> ${STATE}/order\n`, '755');
    await machine.sh('systemctl daemon-reload; systemctl enable --now --quiet camera');
    await configure(machine, { stop_units: '[camera.service]' });
    t.match(await status(machine), { state: 'none', action: 'poweroff', problem: null });

    const malformed = await call('BOREDOM', '', 'nan');
    t.match(malformed, { success: false, message: /reason: found.*requested_by: found.*timeout: found/ });
    const fromStranger = await callSafeShutdown(stranger, VENDOR[suite], 'EMERGENCY', 'stranger', 60, '/health_monitor/safe_shutdown');
    t.match(fromStranger, { success: false, message: /requests from 10\.77\.1\.\d+ are not accepted/ });
    const nobody = await ShutdownClient.start(host, NOBODY, await sharedProgram(t));
    const refused = await nobody.call();
    t.match(refused, {
      success: false,
      message: /^refused: the user nobody may not request a safe shutdown; run: sudo adduser nobody edge-health/,
    });
    t.comment(`nobody was refused in ${refused.ms.toFixed(0)} ms`);
    await nobody.end();
    const { requests, state } = await status(machine);
    t.match(requests[0], { outcome: 'refused', address: '127.0.0.1', port: Number, user: 'nobody' });
    t.equal(state, 'none');
    await holdLock(machine);
    const inhibited = await call('MAINTENANCE', 'operator', 60);
    t.match(inhibited, { success: false, message: /^refused: inhibited by apt \(pid \d+, user root\): Upgrading the map; .*EMERGENCY/ });
    await machine.systemctl('stop', 'upgrade');
    t.equal(await machine.sh(`cat ${STATE}/order 2>/dev/null || echo nothing ran`), 'nothing ran');
    t.equal(await machine.show('camera', 'ActiveState'), 'active');

    // A lock that is taken while the hooks run is respected as well, and the service continues.
    t.match(await call('MANUAL', 'operator', 60), { success: true });
    await machine.until(async () => (await machine.run(['test', '-e', `${STATE}/order`])).code === 0, 120);
    await holdLock(machine);
    await machine.write(GO, '');
    const aborted = await machine.untilJson<StatusDocument>('/status', ({ shutdown }) => shutdown.state === 'aborted');
    t.match(aborted.shutdown, {
      step: 'power',
      message: /the machine stays up.*inhibited by apt.*units left stopped: camera/,
    });
    await machine.sh(`systemctl stop upgrade; systemctl start camera; rm ${STATE}/order ${GO}`);

    const accepted = await call('MAINTENANCE', 'Zoë', 60);
    t.match(accepted, { success: true, message: /^accepted: poweroff for MAINTENANCE within 60 s/ });
    t.comment(`answered in ${accepted.roundTripMs} ms`);
    t.match(await call('POWER_LOW', 'second', 60), { success: false, message: /already in progress: MAINTENANCE, requested by Zoë/ });
    await machine.write(GO, '');
    t.comment(`off after ${(await secondsToEnd(machine)).toFixed(1)} s`);
    t.equal(await machine.read(`${STATE}/order`), 'park for MAINTENANCE\nsave as edge-health\ncamera stopped\n');
    await checkStore(t, machine);
    t.match(await machine.journal('systemd-logind'), /power.*edge-health: MAINTENANCE, requested by Zoë, request 0\w+/i);

    await machine.bootAgain();
    const down = { state: 'completed', step: 'power', message: 'the machine went down and was started again' };
    t.match(await status(machine), { ...down, reason: 'MAINTENANCE', requested_by: 'Zoë' });
    await checkSamples(t, machine);

    // In danger: despite a lock, a logged-in user, and a hook that hangs and ignores SIGTERM.
    await machine.write(`${HOOKS}/15-hangs`, `#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n`, '755');
    await holdLock(machine);
    await logIn(machine, 'robot');
    t.match(await call('EMERGENCY', 'watchdog', 16), { success: true });
    t.comment(`off after ${(await secondsToEnd(machine)).toFixed(1)} s`);
    t.match(
      await machine.read('/var/log/terminal'),
      /edge-health: EMERGENCY, requested by watchdog, request 0/,
      'who is logged in is reported',
    );
    t.match(await machine.journal('edge-health'), /step hooks timed out: 15-hangs was killed/);
    await checkStore(t, machine);

    // And on again, although a unit does not stop in time.
    await machine.bootAgain();
    t.match(await status(machine), { ...down, reason: 'EMERGENCY', requested_by: 'watchdog' });
    await machine.write('/etc/systemd/system/arm.service', unit('sleep 60', 30));
    await machine.sh(`rm ${HOOKS}/*-*; systemctl daemon-reload; systemctl start arm`);
    await configure(machine, { stop_units: '[arm.service, camera.service]', action: 'reboot' });
    const { starts } = machine;
    t.match(await call('POWER_LOW', 'battery', 8), { success: true, message: /accepted: reboot for POWER_LOW/ });
    await machine.waitForBoot(starts);
    t.match(await status(machine), { ...down, reason: 'POWER_LOW', action: 'reboot' });
    t.match(await machine.journal('edge-health'), /step stop_units timed out: arm\.service was terminated/);
    const [asked, reported] = [/safe shutdown accepted reason=POWER_LOW/, /completed: reboot is under way/];
    const took = (await whenSaid(machine, 'edge-health', reported)) - (await whenSaid(machine, 'edge-health', asked));
    t.comment(`the reboot was requested after ${took} ms`);
  });
}
for (const suite of SUITES) {
  t.test(
    `${suite}: the service's user may power off, stop the listed units, and nothing else; other users may not even do that`,
    { skip },
    async (t) => {
      const machine = await Container.boot(t, { suite, installed: (await builtPackage()).file });
      await machine.write('/etc/systemd/system/camera.service', unit('true', 10));
      await machine.write('/etc/systemd/system/drive.service', unit('true', 10));
      await machine.sh('useradd --create-home robot; systemctl daemon-reload; systemctl start camera drive');
      await configure(machine, { stop_units: '[camera.service]' });
      const as = (user: string, script: string) => machine.run(['sh', '-c', script], { user });

      // Every action that polkit has here.
      const granted = async (user: string): Promise<string[]> => {
        const each =
          'for action in $(pkaction); do pkcheck --action-id "$action" --process $$ >/dev/null 2>&1 && echo "$action"; done; true';
        return (await as(user, each)).stdout.trim().split('\n');
      };
      const [ours, others] = [await granted('edge-health'), await granted('robot')];
      const verbs = ['power-off', 'reboot', 'halt'].flatMap((verb) => [verb, `${verb}-ignore-inhibit`, `${verb}-multiple-sessions`]);
      const allowed = [...verbs, 'set-wall-message'].map((verb) => `org.freedesktop.login1.${verb}`);
      t.same(ours.filter((action) => !others.includes(action)).sort(), allowed.sort());
      t.ok(allowed.every((action) => !others.includes(action)));

      const manager = 'busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager';
      const forbidden: Readonly<Record<string, readonly string[]>> = {
        'edge-health': [
          'systemctl --no-ask-password stop drive.service',
          'systemctl --no-ask-password start multi-user.target',
          'systemctl --no-ask-password daemon-reload',
          `${manager} Suspend b false`,
          `${manager} Hibernate b false`,
          `${manager} SetRebootToFirmwareSetup b true`,
          `${manager} SetUserLinger ubb 0 true false`,
        ],
        robot: [
          `${manager} PowerOff b false`,
          `${manager} Reboot b false`,
          `${manager} Halt b false`,
          `${manager} SetWallMessage sb hello true`,
        ],
      };
      for (const [user, scripts] of Object.entries(forbidden)) {
        for (const script of scripts) t.not((await as(user, script)).code, 0, `${user}: ${script}`);
      }

      // The helper of root, with requests as the service sends them.
      const asked = async (user: string, request: string): Promise<string> => {
        const program = `
        const socket = require('node:net').connect('/run/edge-health-stop.sock', () => socket.write(process.argv[1] + '\\n'));
        socket.on('data', (text) => process.stdout.write(text)).on('error', ({ code }) => process.stdout.write(code));`;
        return (await machine.run([NODE, '-e', program, request], { user })).stdout.trim();
      };
      t.match(await asked('robot', 'stop camera.service'), /EACCES/);
      for (const request of [
        'stop drive.service',
        'stop camera.service drive.service',
        'stop -H drive.service',
        'stop *.service',
        'stop dbus',
      ]) {
        t.match(await asked('edge-health', request), /is not in safe_shutdown\.stop_units of \/etc\/edge-health/, request);
      }
      for (const request of ['start drive.service', 'stop', '', 'x'.repeat(100_000)])
        t.match(await asked('edge-health', request), /a request is/);
      t.match(await asked('edge-health', 'stop camera.service'), /^ok$/);
      t.equal(await machine.sh('systemctl show --value -p ActiveState camera drive | xargs'), 'inactive active');
      // A configuration that other users can write to is not used, whoever owns it.
      await machine.sh(`chmod o+w ${CONFIG}`);
      t.match(await asked('edge-health', 'stop camera.service'), /users other than root can write/);
      await machine.sh(`chmod o-w ${CONFIG}; chown edge-health ${CONFIG}`);
      t.match(await asked('edge-health', 'stop camera.service'), /is not owned by root/);
      // A helper that has responded takes a moment to end.
      await machine.until(async () => (await machine.sh('systemctl list-units --all --no-legend "edge-health-stop@*"')).trim() === '', 120);

      // Without the rule the service reports what is missing, and refuses.
      await machine.sh(`chown root ${CONFIG}; rm /usr/share/polkit-1/rules.d/edge-health.rules; systemctl restart polkit edge-health`);
      const withoutRule = await machine.untilJson<StatusDocument>('/status', ({ shutdown }) => shutdown.problem !== null);
      const problem = /^safe_shutdown\.action is poweroff, which polkit does not allow the user edge-health; install polkitd/;
      t.match(withoutRule.shutdown.problem, problem);
      await machine.untilJson<StatusDocument>('/status', ({ ros }) => ros.transport === 'embedded');
      const { message, success } = await callSafeShutdown(machine.host, VENDOR[suite], 'EMERGENCY', 'watchdog', 5);
      t.match({ message, success }, { success: false, message: /which polkit does not allow/ });

      // A user is accepted from the moment of joining the group; the socket table identifies the user.
      const uid = Number(await machine.sh('id -u robot'));
      const robot = await ShutdownClient.start(machine.host, uid, await sharedProgram(t));
      const stranger = await robot.call();
      t.match(stranger, { success: false, message: /the user robot may not request/ });
      t.comment(`robot was refused in ${stranger.ms.toFixed(0)} ms`);
      await machine.sh('usermod --append --groups edge-health robot');
      t.match(await robot.call(), { success: false, message: /which polkit does not allow/ });
      const connected = async (user: string): Promise<string> =>
        (await machine.run([NODE, '-e', READ_TABLE, '/run/edge-health-udp.sock'], { user })).stdout.trim();
      t.match(await connected('robot'), /^EACCES$/);
      t.match(await connected('edge-health'), new RegExp(`^ *sl .*\\n(.*\\n)* *\\d+: .* ${uid} `));
      t.notMatch(await machine.sh('journalctl --no-pager'), /edge-health-udp@/, 'a lookup leaves no line in the journal');
      await machine.systemctl('stop', 'edge-health-udp.socket');
      await robot.end();
      const later = await ShutdownClient.start(machine.host, uid, await sharedProgram(t));
      t.match(await later.call(), { success: false, message: /cannot identify the user at UDP port \d+/ });
      t.match(
        await callSafeShutdown(machine.host, VENDOR[suite], 'EMERGENCY', 'watchdog', 5),
        { message: /which polkit does not allow/ },
        'root is known all the same',
      );
      await later.end();
      t.match(
        await machine.journal('edge-health'),
        /safe shutdown is not possible: safe_shutdown\.action is poweroff, which polkit does not allow/,
      );
      t.ok(machine.isUp);
    },
  );
}
