import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';

t.test('the problem of a data folder of another user names the required change of ownership', async (t) => {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const program = `import(${JSON.stringify(import.meta.resolve('../../../src/core/files/data-folder.ts'))}).then(({ prepareDataFolder }) => {
    process.setuid(65534);
    console.log(JSON.stringify(process.argv.slice(1).map((path) => prepareDataFolder(path, {}))));
  })`;
  const data = join(folder, 'data');
  const parameters = ['--disable-warning=ExperimentalWarning', '-e', program, folder, data];
  const reason = (command: string, path: string): string =>
    `user 65534 may not write to ${folder}; run sudo ${command} ${path}, or set another storage.path`;
  t.same(JSON.parse(execFileSync(process.execPath, parameters, { encoding: 'utf8' })), [
    { text: reason('chown 65534', folder), isMissing: false },
    { text: `${data} cannot be created: ${reason('install -d -o 65534', data)}`, isMissing: true },
  ]);
});
