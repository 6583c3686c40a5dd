import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { HostNames } from './host-names.ts';

t.test('a machine has exactly the names in its own files', async (t) => {
  const folder = temporaryFolder(t);
  const [hosts, resolvConf] = [join(folder, 'hosts'), join(folder, 'resolv.conf')];
  writeFileSync(
    hosts,
    '127.0.0.1\tlocalhost\n127.0.1.1 robot-7.lab.example robot-7 # by the installer\n192.0.2.9 robot-9\n10.0.0.5 arm robot-7\n# 10.0.0.6 robot-7 old\n',
  );
  writeFileSync(resolvConf, '; comment\nsearch campus.example lab-1.campus.example\nnameserver 192.0.2.53\noptions edns0\n');
  let name = 'robot-7';
  const names = new HostNames(() => name, [hosts, resolvConf]);
  /** Without those that Avahi would choose. */
  const plain = (all: readonly string[]): string[] => [...new Set(all)].filter((one) => !/-(?:[89]|1\d)\.local$/.test(one)).sort();
  t.same(plain(names.names()), ['robot-7', 'robot-7.local'], 'before the files are read');
  await names.readAgain();
  t.same(plain(names.names()), [
    'arm',
    'robot-7',
    'robot-7.campus.example',
    'robot-7.lab-1.campus.example',
    'robot-7.lab.example',
    'robot-7.local',
  ]);
  name = 'robot-8.elsewhere.example';
  t.ok(names.names().includes('robot-8.elsewhere.example'), 'a machine that is renamed has its new name at once');
  t.notOk(names.names().includes('arm'));
  name = '';
  t.same(names.names(), []);
});

t.test('missing files result in no names', async (t) => {
  const names = new HostNames(() => 'robot-7', ['/nowhere/hosts', '/nowhere/resolv.conf']);
  await names.readAgain();
  t.notOk(names.names().some((name) => !/^robot-\d+(?:\.local)?$/.test(name)));
});

t.test('where another machine has the name, Avahi appends a number in mDNS, or counts it up', async (t) => {
  const of = (name: string): readonly string[] => new HostNames(() => name, ['/nowhere/hosts', '/nowhere/resolv.conf']).names();
  t.ok(of('robot').includes('robot-2.local'));
  t.ok(of('robot').includes('robot-3.local'));
  t.ok(of('robot-7.lab.example').includes('robot-8.local'));
  for (const other of ['robot-1.local', 'robot-2', 'robot-2.lab.example', 'robot-99.local', 'robot2.local'])
    t.notOk(of('robot').includes(other), other);
  t.notOk(of('robot-7').includes('robot-6.local'));
});

t.test('the files are read again for an unknown name, at most once a second', async (t) => {
  const resolvConf = join(temporaryFolder(t), 'resolv.conf');
  mock.timers.enable({ apis: ['setTimeout'] }); // The timeout for a hanging disk never ends the wait in this test.
  t.teardown(() => mock.timers.reset());
  let nowMs = 0;
  const clock = mock.method(performance, 'now', () => nowMs);
  t.teardown(() => clock.mock.restore());
  const names = new HostNames(() => 'robot', ['/nowhere/hosts', resolvConf]);
  await names.readAgain();
  writeFileSync(resolvConf, 'search lab.example\n');
  nowMs = 999;
  await names.readAgain();
  t.notOk(names.names().includes('robot.lab.example'));
  nowMs = 1001;
  await Promise.all([names.readAgain(), names.readAgain()]);
  t.ok(names.names().includes('robot.lab.example'), 'the domain came with the network');
});
