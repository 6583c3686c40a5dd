import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
  t.same(names.names(), ['robot-7', 'robot-7', 'robot-7.local'], 'before the files are read');
  await names.read();
  t.same([...new Set(names.names())].sort(), [
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
  await names.read();
  t.same(names.names(), ['robot-7', 'robot-7', 'robot-7.local']);
});
