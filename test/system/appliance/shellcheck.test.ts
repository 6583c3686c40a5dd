/** Checks the shell programs of the package with shellcheck. */
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import t from 'tap';

const skip = spawnSync('shellcheck', ['--version']).error ? 'needs the Debian package shellcheck' : false;

t.test('shellcheck finds nothing', { skip }, async (t) => {
  const files = ['bin/edge-health', 'bin/with-ros2', ...globSync('debian/edge-health.{pre,post}{inst,rm}')];
  t.ok(files.length >= 6, files.join(' '));
  for (const file of files) {
    const { stdout, status } = spawnSync('shellcheck', [file], { encoding: 'utf8' });
    t.equal(status, 0, `${file}\n${stdout}`);
  }
});
