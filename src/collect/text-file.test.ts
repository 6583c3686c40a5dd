import { mkdirSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { makeUnreadable } from '../../testkit/machine/machines.ts';
import { until } from '../../testkit/wait.ts';
import { OccasionalReader, TextFile } from './text-file.ts';

/** Files that every Linux has: one in procfs, one in sysfs. */
const PROC_FILE = '/proc/meminfo';
const SYSFS_FILE = '/sys/kernel/uevent_seqnum';

function read(file: TextFile): Promise<string> {
  return new Promise((resolve, reject) => file.read((error, text) => (error ? reject(error) : resolve(text))));
}

function descriptorsOf(path: string): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === path;
    } catch {
      return false; // The one that listed the folder is closed by now.
    }
  }).length;
}

/** Closing goes through the thread pool; waits until nothing is open. */
async function settleDescriptors(path: string): Promise<number> {
  await until(`${path} is closed`, () => descriptorsOf(path) === 0);
  return descriptorsOf(path);
}

t.test('a file of a recorded tree is read again each time, even if it is replaced', async (t) => {
  const path = join(temporaryFolder(t), 'temp');
  writeFileSync(path, '41000\n');
  const file = new TextFile(path);
  t.equal(await read(file), '41000\n');
  t.equal(await read(file), '41000\n');
  writeFileSync(`${path}.next`, '42000\n');
  renameSync(`${path}.next`, path);
  t.equal(await read(file), '42000\n');
  rmSync(path);
  await t.rejects(read(file), { code: 'ENOENT' });
  writeFileSync(path, '');
  t.equal(await read(file), '');
  t.equal(await settleDescriptors(path), 0);
});

t.test('reads no more than requested', async (t) => {
  const path = join(temporaryFolder(t), 'long');
  writeFileSync(path, 'x'.repeat(10_000));
  t.equal((await read(new TextFile(path, 64))).length, 64);
  t.equal((await read(new TextFile(path))).length, 4096);
});

t.test('a pipe without a writer returns EAGAIN, a folder EISDIR', async (t) => {
  const folder = temporaryFolder(t);
  makeUnreadable(t, join(folder, 'pipe'), 'EAGAIN');
  mkdirSync(join(folder, 'folder'));
  const pipe = new TextFile(join(folder, 'pipe'));
  await t.rejects(read(pipe), { code: 'EAGAIN' });
  await t.rejects(read(pipe), { code: 'EAGAIN' }, 'each time');
  await t.rejects(read(new TextFile(join(folder, 'folder'))), { code: 'EISDIR' });
  await t.rejects(new OccasionalReader().read(join(folder, 'pipe')), { code: 'EAGAIN' });
});

for (const path of [PROC_FILE, SYSFS_FILE]) {
  t.test(`${path}: one descriptor, kept open and read from its start each time`, async (t) => {
    const file = new TextFile(path);
    const start = /^\w+/.exec(readFileSync(path, 'latin1'))?.[0] as string;
    for (let i = 0; i < 3; i += 1) t.ok((await read(file)).startsWith(path === PROC_FILE ? start : start.slice(0, 1)));
    t.equal(descriptorsOf(path), 1);
    file.close();
    t.equal(await settleDescriptors(path), 0);
    t.not(await read(file), '', 'it can be used again');
    file.close();
    t.equal(await settleDescriptors(path), 0);
  });

  t.test(`${path}: closed during a read, it is closed when the read has ended`, async (t) => {
    for (const readsBefore of [0, 1]) {
      const file = new TextFile(path);
      for (let i = 0; i < readsBefore; i += 1) await read(file);
      const answer = read(file);
      file.close();
      t.not(await answer, '');
      t.equal(await settleDescriptors(path), 0, `${readsBefore} reads before`);
    }
  });
}

t.test('procfs is read at once, anything else later', async (t) => {
  const path = join(temporaryFolder(t), 'temp');
  writeFileSync(path, '1\n');
  for (const [file, expected] of [
    [new TextFile(PROC_FILE), true],
    [new TextFile(SYSFS_FILE), false],
    [new TextFile(path), false],
  ] as const) {
    await read(file); // Detects the file system.
    let answered = false;
    const done = new Promise<void>((resolve) =>
      file.read(() => {
        answered = true;
        resolve();
      }),
    );
    t.equal(answered, expected, file.path);
    await done;
    file.close();
  }
});

t.test('an occasional read returns the text or the error', async (t) => {
  const path = join(temporaryFolder(t), 'name');
  const reader = new OccasionalReader();
  await t.rejects(reader.read(path), { code: 'ENOENT' });
  writeFileSync(path, 'coretemp\n');
  t.equal(await reader.read(path), 'coretemp\n');
  t.equal(await settleDescriptors(path), 0);
});

t.test('a file that hangs is abandoned, not read again while it hangs, and read again after that', async (t) => {
  // No time at all: the thread pool cannot have responded when the deadline is checked.
  const path = join(temporaryFolder(t), 'slow');
  writeFileSync(path, '1\n');
  const reader = new OccasionalReader(0);
  const answer = reader.read(path);
  const end = performance.now() + 20;
  while (performance.now() < end); // The timer is due before any response can be delivered.
  const again = answer.catch((error: NodeJS.ErrnoException) => {
    t.equal(error.code, 'ETIMEDOUT');
    return reader.read(path);
  });
  await t.rejects(again, { code: 'ETIMEDOUT', message: /still hanging/ });
  // The late response arrives in one of the next turns of the loop, and ends the hang.
  await until('it is asked again', () =>
    reader.read(path).then(
      () => true,
      (error: Error) => !error.message.includes('still hanging'),
    ),
  );
});
