import fs, { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type Duplex, duplexPair } from 'node:stream';
import { text } from 'node:stream/consumers';
import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { helpToStop, trustedPath } from './stop-helper.ts';
import { requestFromHelper } from './stop-helper-client.ts';

/** Possible owners of the configuration and its folders besides root: this user or, in a user namespace, the machine's root. */
const UID = process.getuid?.() || statSync('/').uid;

/** The helper with a systemctl and a busctl that log their arguments; each connection is one run of it. */
class Place {
  readonly folder: string;
  readonly config: string;
  readonly socket: string;
  readonly runs: Promise<void>[] = [];

  private constructor(folder: string) {
    this.folder = folder;
    this.config = join(folder, 'etc', 'edge_health_config.yaml');
    this.socket = join(folder, 'helper.sock');
    mkdirSync(join(folder, 'etc'), { mode: 0o755 });
    this.configure('safe_shutdown: {stop_units: [camera.service, broken.service, slow.service]}');
    const systemctl = `#!/bin/sh\necho "$@" >> ${folder}/calls\ncase $4 in broken*) echo "it is broken" >&2; exit 1;; slow*) echo $$ > ${folder}/slow; exec sleep 60;; esac\n`;
    writeFileSync(join(folder, 'systemctl'), systemctl);
    writeFileSync(join(folder, 'busctl'), `#!/bin/sh\necho "$@" >> ${folder}/calls\n`);
    for (const name of ['systemctl', 'busctl']) chmodSync(join(folder, name), 0o755);
  }

  static async make(t: Test): Promise<Place> {
    const folder = temporaryFolder(t);
    const place = new Place(folder);
    const server = createServer((connection) => place.serve(connection));
    await new Promise<void>((resolve) => {
      server.listen(place.socket, resolve);
    });
    t.teardown(() => server.close());
    return place;
  }

  serve(connection: Duplex): void {
    const { config: configFile, folder } = this;
    const environment = { PATH: `${folder}:${process.env['PATH']}` };
    this.runs.push(helpToStop({ connection, configFile, environment, log: () => undefined, uid: UID, answerSeconds: 120 }));
  }

  configure(yaml: string): void {
    writeFileSync(this.config, yaml, { mode: 0o644 });
  }

  async ask(request: string): Promise<string> {
    const answer = await requestFromHelper(this.socket, request).answer;
    return answer === null ? 'ok' : answer === 'absent' ? answer : answer.problem;
  }

  calls(): string[] {
    const file = join(this.folder, 'calls');
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  }
}

t.test('a unit listed in the configuration is stopped, and the result is returned', async (t) => {
  const place = await Place.make(t);
  t.equal(await place.ask('stop camera.service'), 'ok');
  t.equal(await place.ask('stop broken.service'), 'exit code 1; last output: it is broken');
  t.same(place.calls(), ['--no-ask-password stop -- camera.service', '--no-ask-password stop -- broken.service']);
  place.configure('safe_shutdown: {stop_units: [arm.service]}');
  t.equal(await place.ask('stop arm.service'), 'ok', 'the file is read for each request');
  await Promise.all(place.runs);
});

t.test('no other unit is stopped, and no other action performed', async (t) => {
  const place = await Place.make(t);
  for (const unit of [
    'dbus.service',
    'camera',
    'camera.service arm.service',
    ' camera.service',
    'CAMERA.service',
    '*',
    '--help',
    '/',
    'x'.repeat(250),
  ]) {
    t.match(await place.ask(`stop ${unit}`), /is not in safe_shutdown\.stop_units of /, unit);
  }
  for (const request of ['', 'stop', 'stop ', 'start camera.service', 'Poweroff', 'poweroff now', 'kexec', 'x'.repeat(100_000)]) {
    t.match(await place.ask(request), /^a request is "stop UNIT"/, request.slice(0, 20));
  }
  t.same(place.calls(), []);
});

t.test('a request whose line is not completed in time is not performed', async (t) => {
  const place = await Place.make(t);
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const [client, connection] = duplexPair();
  place.serve(connection);
  client.write('poweroff');
  await new Promise((later) => setImmediate(later));
  mock.timers.tick(5000);
  t.match(await text(client), /^a request is "stop UNIT"/);
  t.same(place.calls(), []);
  await Promise.all(place.runs);
});

t.test('the machine is stopped despite inhibitor locks, as polkit allows the service as well', async (t) => {
  const place = await Place.make(t);
  for (const [action, method] of [
    ['poweroff', 'PowerOff'],
    ['reboot', 'Reboot'],
    ['halt', 'Halt'],
  ] as const) {
    t.equal(await place.ask(action), 'ok');
    t.match(place.calls().at(-1), new RegExp(`login1.Manager ${method}WithFlags t 16$`));
  }
});

t.test('a configuration that is invalid, missing or writable by others allows nothing', async (t) => {
  const place = await Place.make(t);
  const refused = async (why: RegExp): Promise<void> => {
    t.match(await place.ask('stop camera.service'), why);
  };
  chmodSync(place.config, 0o666);
  await refused(/users other than root can write .*edge_health_config\.yaml; run: chmod go-w/);
  chmodSync(place.config, 0o664);
  await refused(/users other than root can write/);
  chmodSync(place.config, 0o644);
  chmodSync(join(place.folder, 'etc'), 0o777);
  await refused(/users other than root can write .*etc; run: chmod/);
  chmodSync(join(place.folder, 'etc'), 0o755);
  place.configure('safe_shutdown: {stop_units: 5}');
  await refused(/has errors; see: edge-health check-config/);
  rmSync(place.config);
  await refused(/cannot be read: ENOENT/);
  const linked = join(place.folder, 'linked.yaml');
  writeFileSync(linked, 'safe_shutdown: {stop_units: [camera.service]}');
  chmodSync(linked, 0o666);
  symlinkSync(linked, place.config);
  await refused(/users other than root can write .*linked\.yaml/);
  t.same(place.calls(), []);
});

t.test('the file that is loaded is the one that was checked, whatever a symbolic link names by then', async (t) => {
  const place = await Place.make(t);
  const checked = join(place.folder, 'etc', 'checked.yaml');
  writeFileSync(checked, 'safe_shutdown: {stop_units: [arm.service]}', { mode: 0o644 });
  const planted = join(place.folder, 'planted.yaml');
  writeFileSync(planted, 'safe_shutdown: {stop_units: [camera.service]}');
  const link = (target: string): void => {
    rmSync(place.config, { force: true });
    symlinkSync(target, place.config);
  };
  link(checked);
  const mocked = mock.method(fs, 'realpathSync', () => {
    link(planted);
    return checked;
  });
  syncBuiltinESMExports();
  t.teardown(() => {
    mocked.mock.restore();
    syncBuiltinESMExports();
  });
  t.match(await place.ask('stop camera.service'), /is not in safe_shutdown\.stop_units of /);
  link(checked);
  t.equal(await place.ask('stop arm.service'), 'ok');
  t.same(place.calls(), ['--no-ask-password stop -- arm.service']);
});

t.test('a configuration belongs to root or to the user of the helper, as do the folders above it', async (t) => {
  const place = await Place.make(t);
  const owners =
    (all: number, ofThis: Readonly<Record<string, number>> = {}) =>
    (path: string) => ({ mode: 0o755, uid: ofThis[path] ?? all });
  const trusted = { path: realpathSync(place.config) };
  t.same(trustedPath(place.config, 12_345, owners(0)), trusted);
  t.same(trustedPath(place.config, 12_345, owners(0, { [place.config]: 12_345 })), trusted);
  t.match(trustedPath(place.config, 12_345, owners(0, { [place.config]: 12_346 })), {
    problem: /edge_health_config\.yaml is not owned by root/,
  });
  t.match(trustedPath(place.config, 12_345, owners(0, { [join(place.folder, 'etc')]: 12_346 })), { problem: /etc is not owned by root/ });
});

t.test('a client that disconnects leaves nothing running', async (t) => {
  const place = await Place.make(t);
  const asked = requestFromHelper(place.socket, 'stop slow.service');
  while (!existsSync(join(place.folder, 'slow')) || readFileSync(join(place.folder, 'slow'), 'utf8') === '') {
    await new Promise((later) => setTimeout(later, 10));
  }
  asked.close();
  await Promise.all(place.runs);
  const pid = Number(readFileSync(join(place.folder, 'slow'), 'utf8'));
  t.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  const silent = requestFromHelper(place.socket, 'unused');
  silent.close();
  t.match(await silent.answer, { problem: /without a response/ });
  await Promise.all(place.runs);
});
