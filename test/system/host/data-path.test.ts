import { execFileSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';

t.test('a data folder of another user: what must be given to whom', async (t) => {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const program = `import(${JSON.stringify(import.meta.resolve('../../../src/installation/data-path.ts'))}).then(({ dataPathProblem }) => {
    process.setuid(65534);
    console.log(dataPathProblem(process.argv[1], {}));
  })`;
  const parameters = ['--disable-warning=ExperimentalWarning', '-e', program, join(folder, 'data')];
  const output = execFileSync(process.execPath, parameters, { encoding: 'utf8' });
  t.equal(output, `user 65534 may not write to ${folder}; give it to that user\n`);
});
