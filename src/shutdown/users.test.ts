import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { Users, userName } from './users.ts';

/** Files of users and groups, and an `id` that runs this script. */
function machine(t: Test, id = 'exit 1', answerMs?: number): { users: Users; passwd: string; program: string } {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'bin'));
  writeFileSync(
    join(folder, 'passwd'),
    'root:x:0:0:root:/root:/bin/bash\nrobot:x:1000:1000:,,,:/home/robot:/bin/bash\nedge-health:x:997:996::/:/bin/false\nbad line\n',
  );
  writeFileSync(join(folder, 'group'), 'root:x:0:\nsudo:x:27:anna,robot\nedge-health:x:996:bert\nrobot:x:1000:\nrobots:x:1001:robot2\n');
  const program = join(folder, 'bin/id');
  writeFileSync(program, `#!/bin/sh\n${id}\n`);
  chmodSync(program, 0o755);
  const users = new Users({ PATH: `${folder}/bin:${process.env['PATH']}` }, folder, answerMs);
  return { users, passwd: join(folder, 'passwd'), program };
}

t.test('groups are those of the files: the primary one, and those that have the user as a member', async (t) => {
  const { users, passwd } = machine(t);
  t.same(await users.user(1000), { uid: 1000, name: 'robot', groups: ['sudo', 'robot'] });
  t.same(await users.user(997), { uid: 997, name: 'edge-health', groups: ['edge-health'] });
  t.same(await users.user(0), { uid: 0, name: 'root', groups: ['root'] });
  t.equal(userName(997, passwd), 'edge-health');
  t.equal(userName(998, passwd), null);
  t.equal(userName(0, '/nowhere'), null);
});

t.test('users that are not in the files are looked up with id', async (t) => {
  const { users } = machine(
    t,
    `[ "$*" = 5000 ] && printf '%s\\n' 'uid=5000(LAB\\anna) gid=5000(domain users) groups=5000(domain users),27(sudo),6000'`,
    120_000,
  );
  t.same(await users.user(5000), { uid: 5000, name: 'LAB\\anna', groups: ['domain users', 'sudo'] });
  t.same(await users.user(5001), { uid: 5001, name: null, groups: [] });
});

t.test('a directory without response delays no caller, and few processes wait for it', async (t) => {
  const { program, users } = machine(t, 'echo $$ >> "$0.runs"; exec sleep 60');
  const found = await Promise.all(Array.from({ length: 50 }, (_, i) => users.user(5000 + i)));
  t.ok(found.every(({ groups, name }) => name === null && groups.length === 0));
  // A process may be ended before its shell has written the line.
  const runs = existsSync(`${program}.runs`) ? readFileSync(`${program}.runs`, 'utf8').trim().split('\n').length : 0;
  t.ok(runs <= 4, `${runs} processes`);
});
