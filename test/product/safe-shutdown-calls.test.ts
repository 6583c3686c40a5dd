import t from 'tap';
import { parseConfig } from '../../src/config/parse.ts';
import type { ShutdownCaller } from '../../src/core/shutdown/shutdown.ts';
import { addressRefusal, shutdownSettings } from '../../src/shutdown/settings.ts';
import type { LocalUser } from '../../src/shutdown/users.ts';
import { caller, Scene, TestPower } from '../../testkit/service/safe-shutdown.ts';

// Tests which calls are accepted.

const REMOTE = caller({ address: '192.0.2.7', local: false });

t.test('invalid fields are refused, all of them named at once, and nothing is run', async (t) => {
  const scene = await Scene.start(t);
  scene.hook('10-never');
  const { message, success } = await scene.call({ reason: 'BORED', requested_by: '', timeout: Number.NaN });
  t.equal(success, false);
  t.match(message, /^refused: reason: found "BORED", allowed: one of OVERTEMP.*requested_by: .*timeout: found NaN/);
  t.equal((await scene.shutdown.status()).state, 'none');
  t.same(scene.progress, []);
  t.same(scene.order(), []);
});

t.test('a second call is refused with the requester of the first one and the time left', async (t) => {
  const scene = await Scene.start(t);
  scene.heldHook('10-waits');
  t.equal((await scene.call({ requested_by: 'Jörg' })).success, true);
  const second = await scene.call({ reason: 'POWER_LOW', requested_by: 'eve', timeout: 1 });
  t.equal(second.success, false);
  t.match(second.message, /^refused: already in progress: MAINTENANCE, requested by Jörg, \d+\.\d s left$/);
  t.match(await scene.shutdown.status(), { state: 'in_progress', requested_by: 'Jörg', seconds_left: Number, accepted: 1, refused: 1 });
  scene.release();
  t.match(await scene.ended(), { requested_by: 'Jörg', state: 'completed' });
});

t.test('of many calls at the same moment one is accepted', async (t) => {
  const slow = new TestPower();
  slow.refusal = () => new Promise((resolve) => setTimeout(resolve, 20, null));
  const scene = await Scene.start(t, { power: slow });
  scene.hook('10-once');
  const replies = await Promise.all(Array.from({ length: 20 }, (_, n) => scene.call({ requested_by: `caller ${n}` })));
  t.equal(replies.filter(({ success }) => success).length, 1);
  for (const { message } of replies.filter(({ success }) => !success)) t.match(message, /already in progress/);
  await scene.ended();
  t.same(scene.order(), ['hook 10-once']);
});

t.test('a caller that calls too often gets the time to wait, and other callers are not affected', async (t) => {
  const scene = await Scene.start(t, { settings: { max_requests_per_minute: 1 } });
  t.match((await scene.call({ timeout: -1 })).message, /timeout/);
  const { message, success } = await scene.call();
  t.equal(success, false);
  t.match(message, /^refused: too many requests: at most 1 per minute from one caller; try again in \d\d? s$/);
  t.match((await scene.call({ timeout: -1 })).message, /too many requests/, 'an invalid request counts, and is answered alike');
  t.equal((await scene.call({ requested_by: 'somebody else' })).success, true);
  await scene.ended();
});

t.test('another host is refused unless it is listed and has answered; callers that the transport vouches for are accepted', async (t) => {
  const scene = await Scene.start(t, { settings: { allow_from: ['192.0.2.8', '2001:db8::/32', '10.1.0.0/16'] } });
  const ask = async (who: ShutdownCaller): Promise<string> => {
    const { message, success } = await scene.call({}, who);
    if (success) await scene.ended();
    return success ? 'accepted' : message;
  };
  t.match(await ask(REMOTE), /^refused: requests from 192\.0\.2\.7 are not accepted; .*safe_shutdown\.allow_from/);
  for (const address of ['192.0.2.8', '::ffff:192.0.2.8', '2001:db8::1', '10.1.255.255']) {
    t.equal(await ask(caller({ address, local: false })), 'accepted', address);
  }
  for (const address of ['10.2.0.0', '2001:db9::1', 'localhost', '', '127.0.0.1']) {
    t.match(await ask(caller({ address, local: false })), /not accepted/, address);
  }
  t.equal(await ask({ dds: null, mayBeForAnother: () => false }), 'accepted', 'where the transport does not tell, it decides');
  const forged = caller({ address: '192.0.2.8', local: false, prove: async () => false });
  t.match(await ask(forged), /^refused: requests from 192\.0\.2\.8 are not accepted: its DDS participant did not respond$/);
  t.match((await scene.records(1))[0], { outcome: 'refused', address: '192.0.2.8', port: 40_000, user: null });
});

t.test('a port whose user changes while the participant answers is not attributed to the first user', async (t) => {
  let users: readonly LocalUser[] = [{ uid: 0, name: 'root', groups: [] }];
  const scene = await Scene.start(t, { findUsers: async () => users });
  const prove = async (): Promise<boolean> => {
    users = [{ uid: 4_000_001, name: 'nobody', groups: [] }];
    return true;
  };
  t.match((await scene.call({}, caller({ prove }))).message, /the user nobody may not request/);
});

t.test('of this host root, the user of the service, members of two groups and listed users are accepted', async (t) => {
  const ownUid = process.geteuid?.() ?? 0;
  const user = (uid: number, name: string | null, ...groups: string[]): LocalUser => ({ uid, name, groups });
  const nobody = user(4_000_001, 'nobody', 'nogroup');
  const allowed = [
    [user(0, 'root', 'root')],
    [user(ownUid, 'service', 'service')],
    [user(5001, 'anna', 'anna', 'sudo')],
    [user(5002, 'bert', 'edge-health')],
    [user(5003, 'listed', 'listed')],
    [user(5004, null)],
    [user(0, 'root'), user(5003, 'listed')],
  ];
  const refused = [[nobody], [user(5005, 'edge-health', 'users')], [user(5006, null)], [user(0, 'root'), nobody]];
  let found: readonly LocalUser[] | null = null;
  let byPort: Readonly<Record<number, readonly LocalUser[]>> | null = null;
  const ports: (readonly number[])[] = [];
  const findUsers = async (asked: readonly number[]): Promise<typeof found> => {
    ports.push(asked);
    return byPort === null ? found : (byPort[asked[0] as number] ?? null);
  };
  const settings = { allow_users: ['listed', '5004'] };
  const scene = await Scene.start(t, { settings, findUsers });
  for (const users of allowed) {
    found = users;
    const names = users.map(({ name, uid }) => name ?? String(uid)).join(', ');
    t.equal((await scene.call()).success, true, names);
    await scene.ended();
    t.match((await scene.records(1))[0], { outcome: 'completed', address: '127.0.0.1', port: 40_000, user: names });
  }
  for (const users of refused) {
    found = users;
    const { message, success } = await scene.call();
    t.match({ message, success }, { success: false, message: /^refused: the user \S+ may not request a safe shutdown; .*allow_users$/ });
    t.match((await scene.records(1))[0], {
      outcome: 'refused',
      port: 40_000,
      user: users.map(({ name, uid }) => name ?? String(uid)).join(', '),
    });
  }
  found = [nobody];
  t.match((await scene.call()).message, 'run: sudo adduser nobody edge-health, or add nobody to safe_shutdown.allow_users');
  t.match(scene.logged.filter(({ message }) => message === 'safe shutdown refused').at(-1), {
    level: 'warning',
    fields: { address: '127.0.0.1', port: 40_000, user: 'nobody' },
  });
  t.same(ports.slice(-2), [[40_000], [7410, 7411]], 'the port that it came from, and those that its participant receives at');

  found = null;
  const unknown = /^refused: cannot identify the user at UDP port 40000; call from a program that runs until it has the response$/;
  t.match((await scene.call()).message, unknown);
  found = [user(0, 'root')];
  t.match((await scene.call({}, caller({ receivingPorts: null }))).message, unknown, 'its participant receives on another machine');
  const unproven = await scene.call({}, caller({ prove: async () => false }));
  t.match(unproven.message, /its DDS participant did not respond/);

  // A port that both users share, or that root has bound since; and a participant that uses it for another user.
  byPort = { 40000: [user(0, 'root')], 7410: [nobody] };
  t.match((await scene.call({}, caller({ receivingPorts: [7410] }))).message, /the user nobody may not request/);
  t.match((await scene.records(1))[0], { user: 'root, nobody' });
  byPort = { 40000: [nobody], 7410: [user(0, 'root')] };
  t.match((await scene.call({}, caller({ receivingPorts: [7410] }))).message, /the user nobody may not request/);
  byPort = { 40000: [user(0, 'root')] };
  t.match((await scene.call({}, caller({ receivingPorts: [7410] }))).message, unknown);
  byPort = null;

  found = [user(5001, 'anna', 'anna', 'sudo')];
  await scene.shutdown.configure({ ...scene.settings, allow_groups: [] });
  t.match((await scene.call()).message, /^refused: the user anna may not request a safe shutdown; add anna to safe_shutdown\.allow_users$/);
  found = [user(0, 'root')];
  t.equal((await scene.call()).success, true, 'root without any group');
  await scene.ended();
  found = [nobody];
  await scene.shutdown.configure({ ...scene.settings, allow_users: ['nobody'] });
  t.equal((await scene.call()).success, true, 'the list is taken over while it runs');
  await scene.ended();
});

t.test('on a trusted network every user of this host is accepted, and no other host', async (t) => {
  const scene = await Scene.start(t, { settings: { trust_network: true }, findUsers: async () => null });
  t.equal((await scene.call({}, caller({ receivingPorts: null, prove: async () => false }))).success, true);
  await scene.ended();
  t.match((await scene.call({}, REMOTE)).message, /are not accepted.*allow_from/);
});

t.test('a repeated request is not run again; a refused one does not use up its number', async (t) => {
  let users: readonly LocalUser[] = [{ uid: 4_000_001, name: 'nobody', groups: [] }];
  const scene = await Scene.start(t, { findUsers: async () => users });
  const handled = new Set<number>();
  const numbered = (number: number): ShutdownCaller => caller({ isNew: () => !handled.has(number) && handled.add(number).has(number) });
  const call = { reason: 'MANUAL', requested_by: 'x', timeout: 5 };
  t.match(await scene.shutdown.handler(call, numbered(1)), { success: false, message: /the user nobody/ });
  users = [{ uid: 0, name: 'root', groups: [] }];
  t.match(await scene.shutdown.handler(call, numbered(1)), { success: true });
  t.equal(await scene.shutdown.handler(call, numbered(1)), null);
  await scene.ended();
  t.match(await scene.shutdown.status(), { accepted: 1, refused: 1 });
});

t.test('an unauthorised caller that may mean another machine is recorded but not answered; any other is answered', async (t) => {
  const scene = await Scene.start(t);
  const call = { reason: 'MAINTENANCE', requested_by: 'laptop', timeout: 5 };
  t.equal(await scene.shutdown.handler(call, caller({ address: '192.0.2.7', local: false, mayBeForAnother: true })), null);
  t.match(await scene.shutdown.handler(call, REMOTE), { success: false, message: /not accepted/ });
  t.match(await scene.shutdown.status(), {
    state: 'none',
    refused: 2,
    requests: [
      { requested_by: 'laptop', address: '192.0.2.7', outcome: 'refused' },
      { requested_by: 'laptop', address: '192.0.2.7', outcome: 'refused' },
    ],
  });
  t.match(
    await scene.shutdown.handler(call, caller({ receivingPorts: null, mayBeForAnother: true })),
    { message: /cannot identify/ },
    'this host is meant',
  );
  t.match(await scene.shutdown.handler(call, caller({ mayBeForAnother: true })), { success: true });
  await scene.ended();
});

t.test('a flood from an unauthorised host does not keep out authorised callers', async (t) => {
  const scene = await Scene.start(t, { settings: { max_requests_per_minute: 1 } });
  for (let n = 0; n < 1000; n += 1) await scene.call({}, REMOTE);
  t.equal((await scene.call()).success, true);
  await scene.ended();
});

t.test('link-local addresses have their interface', async (t) => {
  const allowed = ['fe80::1', '192.168.0.0/16'];
  t.equal(addressRefusal('fe80::1%eth0', allowed), null);
  t.match(addressRefusal('fe80::2%eth0', allowed), /fe80::2%eth0 are not accepted/);
});

t.test('an action that is not possible is refused before anything is run, and shown before it is requested', async (t) => {
  for (const action of ['poweroff', 'reboot', 'halt'] as const) {
    const scene = await Scene.start(t, { settings: { action, stop_units: ['camera.service'] } });
    scene.hook('10-never');
    t.ok(scene.logged.some(({ level, message }) => level === 'warning' && message.includes(`safe_shutdown.action is ${action}`)));
    const { message, success } = await scene.call({ reason: 'EMERGENCY' });
    t.equal(success, false);
    t.match(message, `refused: safe_shutdown.action is ${action}, which cannot be done here; set it to dry-run`);
    t.same(scene.order(), []);
    t.match(await scene.shutdown.status(), { state: 'none', action, problem: /cannot be done/ });
    await scene.stop();
  }
});

t.test('a disabled shutdown refuses; other settings are applied at run time', async (t) => {
  const scene = await Scene.start(t);
  await scene.shutdown.configure({ ...scene.settings, enabled: false });
  t.match((await scene.call()).message, /safe_shutdown\.enabled is false/);
  t.match(await scene.shutdown.status(), { enabled: false });
  await scene.shutdown.configure({ ...scene.settings, allow_from: ['192.0.2.7'], stop_units: ['new.service'] });
  t.equal((await scene.call({}, REMOTE)).success, true);
  await scene.ended();
  t.same(scene.order(), ['stop new.service']);
});

t.test('settings come from the configuration; the hooks are beside its file', async (t) => {
  const settingsOf = (yaml: string): ReturnType<typeof shutdownSettings> => {
    const parsed = parseConfig(yaml, 'x.yaml');
    if (!parsed.ok) throw new Error('not a configuration');
    return shutdownSettings(parsed.config, '/etc/edge-health/edge_health_config.yaml', 'dry-run');
  };
  t.same(settingsOf(''), {
    enabled: true,
    action: 'dry-run',
    allow_from: [],
    allow_groups: ['edge-health', 'sudo'],
    allow_users: [],
    trust_network: false,
    max_requests_per_minute: 10,
    hooksFolder: '/etc/edge-health/shutdown.d',
    hooksRequired: false,
    stop_units: [],
  });
  t.match(settingsOf('safe_shutdown: {hooks_path: /opt/hooks, action: reboot}'), {
    hooksFolder: '/opt/hooks',
    hooksRequired: true,
    action: 'reboot',
  });
});

t.test('the configuration refuses values that are not possible', async (t) => {
  const refused = (yaml: string): string => {
    const parsed = parseConfig(`safe_shutdown: ${yaml}`, 'x.yaml');
    return parsed.ok ? 'accepted' : parsed.errors.map(({ key, allowed }) => `${key}: ${allowed}`).join();
  };
  for (const entry of ['10.0.0.1', '::1', 'fe80::1', '10.0.0.0/8', '2001:db8::/128', '0.0.0.0/0']) {
    t.equal(refused(`{allow_from: ["${entry}"]}`), 'accepted', entry);
  }
  for (const entry of ['robot.local', '10.0.0', '10.0.0.1/33', '::/129', '10.0.0.1/', '10.0.0.1/8/8', '', '999.1.1.1', ':::']) {
    t.match(refused(`{allow_from: ["${entry}"]}`), /^safe_shutdown\.allow_from\.0: IP addresses such as/, entry);
  }
  for (const user of ['robot', 'anna.b', 'DOMAIN\\\\anna', '100999', 'x'.repeat(128)]) {
    t.equal(refused(`{allow_users: ["${user}"]}`), 'accepted', user);
  }
  for (const user of ['', 'a b', 'a:b', 'a,b', '/etc', 'x'.repeat(129)]) {
    t.match(refused(`{allow_users: ["${user}"]}`), /^safe_shutdown\.allow_users\.0: names of users/, user);
  }
  for (const unit of ['camera.service', 'arm@left.service', 'edge-health@sensor_node.service', 'dev-sda\\\\x2d1.device']) {
    t.equal(refused(`{stop_units: ["${unit}"]}`), 'accepted', unit);
  }
  for (const unit of ['--force', 'a b', '', 'edge-health', 'edge-health.service', 'edge-health-udp.socket', 'a;b', '../x', 'a/b']) {
    t.match(refused(`{stop_units: ["${unit}"]}`), /^safe_shutdown\.stop_units\.0: names of systemd units/, unit);
  }
  t.match(refused('{max_requests_per_minute: 0}'), /whole number from 1 to 600/);
});
