import t from 'tap';
import { isMapped, uidMap } from './privileges.ts';

t.test('a user namespace contains the users of its map', async (t) => {
  const machine = '         0          0 4294967295\n';
  t.ok(isMapped(0, machine));
  t.ok(isMapped(65_534, machine));
  const ordinary = '         0       1001          1\n';
  t.ok(isMapped(0, ordinary));
  t.notOk(isMapped(65_534, ordinary), 'whom the kernel shows in place of users outside');
  const container = '         0       1000          1\n         1     100000      65536\n';
  t.ok(isMapped(65_534, container));
  t.notOk(isMapped(65_537, container));
});

t.test('a kernel without user namespaces has every user', async (t) => {
  t.ok(isMapped(1000, uidMap('/no/such/folder')));
  t.ok(isMapped(process.getuid?.() ?? 0, uidMap()));
});
