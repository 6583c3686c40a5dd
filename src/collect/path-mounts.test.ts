import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { temporaryFolder } from '../../testkit/folder.ts';
import { until } from '../../testkit/wait.ts';
import { type Blocks, DiskSource } from './disk.ts';
import { PathMounts } from './path-mounts.ts';

const ROOT = '22 1 8:2 / / rw - ext4 /dev/sda2 rw';
const percentUsed = (percent: number): Blocks => ({ blocks: 1000, bfree: 1000 - percent * 10, bavail: 1000 - percent * 10 });

/** A machine whose mounts the test sets. Its root file system is 40 % full, every other one 95 %. */
class Machine {
  readonly folder: string;
  readonly usb: string;
  readonly asked: string[] = [];
  readonly logged: string[] = [];
  fstab = '';
  writeError: string | null = null;
  #nowSeconds = 100;
  #mounts = '';
  #source: DiskSource | null = null;

  constructor(t: Test) {
    this.folder = temporaryFolder(t);
    this.usb = join(this.folder, 'usb');
    for (const name of ['proc/self', 'usb', 'data', 'sys/dev/block', 'sys/fs/ext4/sdb1'])
      mkdirSync(join(this.folder, name), { recursive: true });
    symlinkSync('../../devices/sdb/sdb1', join(this.folder, 'sys/dev/block/8:17'));
    this.mount();
    t.teardown(() => this.#source?.close());
  }

  /** Mounts these file systems, as lines of mountinfo without their ids. */
  mount(...lines: readonly string[]): void {
    this.#mounts = [ROOT, ...lines.map((line, index) => `${30 + index} 22 ${line}`)].join('\n');
    writeFileSync(join(this.folder, 'proc/self/mountinfo'), `${this.#mounts}\n`);
  }

  mountUsb(options = 'rw'): void {
    this.mount(`8:17 / ${this.usb} rw - ext4 /dev/sdb1 ${options}`);
  }

  setErrors(count: number): void {
    writeFileSync(join(this.folder, 'sys/fs/ext4/sdb1/errors_count'), `${count}\n`);
  }

  /** Starts measuring, as after a restart of the service. */
  start(...paths: readonly string[]): void {
    this.#source?.close();
    writeFileSync(join(this.folder, 'fstab'), this.fstab);
    const mounts = new PathMounts(paths, {
      procRoot: join(this.folder, 'proc'),
      sysRoot: join(this.folder, 'sys'),
      fstabFile: join(this.folder, 'fstab'),
      dataFolder: join(this.folder, 'data'),
      writeError: () => this.writeError,
      log: (_level, message) => this.logged.push(message),
    });
    this.#source = new DiskSource(paths, () => this.#nowSeconds, {
      mounts,
      isHidden: (_path, callback) => callback(false),
      statfs: (path, callback) => {
        this.asked.push(path);
        const isMounted = this.#mounts.split('\n').some((line) => line !== ROOT && path.startsWith(line.split(' ')[4] as string));
        setImmediate(() => callback(null, percentUsed(isMounted ? 95 : 40)));
      },
    });
  }

  /** Takes a sample after some seconds: percent and problem by path. */
  async sample(seconds = 1): Promise<Readonly<Record<string, readonly [number | null, string | null]>>> {
    const source = this.#source as DiskSource;
    this.#nowSeconds += seconds;
    await new Promise<void>((resolve) => source.read(() => resolve()));
    return Object.fromEntries(source.readings().map(({ path, percent, problem }) => [path, [percent, problem]]));
  }

  /** Waits until this is saved in the data folder. */
  untilSaved(points: object): Promise<unknown> {
    const file = join(this.folder, 'data/mount_points.json');
    return until('the mount points', () => {
      try {
        return JSON.stringify(JSON.parse(readFileSync(file, 'utf8'))) === JSON.stringify(points);
      } catch {
        return false;
      }
    });
  }
}

const GONE = /^nothing is mounted on .*\/usb; mount it, or remove .* from disk\.paths/;

t.test('a path whose mount is gone is not measured as the file system below it, also after a restart', async (t) => {
  const machine = new Machine(t);
  const { usb } = machine;
  machine.start('/', usb);
  t.same(await machine.sample(), { '/': [40, null], [usb]: [40, null] }, 'never seen as a mount point');
  machine.mountUsb();
  t.same((await machine.sample())[usb], [95, null]);
  await machine.untilSaved({ [usb]: usb });
  machine.mount();
  t.match(await machine.sample(), { '/': [40, null], [usb]: [null, GONE] });
  machine.start('/', usb);
  t.match(await machine.sample(), { '/': [40, null], [usb]: [null, GONE] });
  machine.mount(`8:33 / ${usb} rw - vfat /dev/sdc1 rw`);
  t.same((await machine.sample())[usb], [95, null], 'another disk in its place');
});

t.test('a path that was removed from the configuration is forgotten', async (t) => {
  const machine = new Machine(t);
  const { usb } = machine;
  machine.mountUsb();
  machine.start('/', usb);
  await machine.sample();
  await machine.untilSaved({ [usb]: usb });
  machine.mount();
  machine.start('/');
  await machine.sample();
  await machine.untilSaved({});
  machine.start('/', usb);
  t.same((await machine.sample())[usb], [40, null]);
});

t.test('a folder below a mount point, and a symbolic link to one, are missing with it', async (t) => {
  const machine = new Machine(t);
  const [below, link] = [join(machine.usb, 'maps'), join(machine.folder, 'link')];
  mkdirSync(below);
  symlinkSync(below, link);
  machine.mountUsb();
  machine.start(below, link);
  t.same(await machine.sample(), { [below]: [95, null], [link]: [40, null] });
  machine.mount();
  t.match(await machine.sample(), { [below]: [null, GONE], [link]: [null, GONE] });
  rmSync(link);
  symlinkSync(machine.folder, link);
  machine.mount(`0:40 / /elsewhere rw - tmpfs none rw`);
  t.same((await machine.sample())[link], [40, null], 'the link leads elsewhere now');
});

for (const options of ['defaults,nofail', 'noauto,user']) {
  t.test(`a mount point of fstab (${options}) is missing from the first start on`, async (t) => {
    const machine = new Machine(t);
    const { usb } = machine;
    machine.fstab = `UUID=1 ${usb} ext4 ${options} 0 2\n`;
    machine.start(usb);
    t.match(await machine.sample(), { [usb]: [null, GONE] });
    t.same(machine.asked, []);
    machine.mountUsb();
    t.same(await machine.sample(), { [usb]: [95, null] });
  });
}

t.test('an automount that is not in use is not read', async (t) => {
  const machine = new Machine(t);
  const { usb } = machine;
  machine.fstab = `UUID=1 ${usb} ext4 noauto,x-systemd.automount 0 2\n`;
  const trap = `0:50 / ${usb} rw - autofs systemd-1 rw,fd=1,direct`;
  machine.mount(trap);
  machine.start('/', usb);
  t.same(await machine.sample(), { '/': [40, null], [usb]: [null, null] });
  t.same(machine.asked, ['/']);
  writeFileSync(join(machine.folder, 'proc/self/mountinfo'), `${ROOT}\n30 22 ${trap}\n31 30 8:17 / ${usb} rw - ext4 /dev/sdb1 rw\n`);
  t.type((await machine.sample())[usb]?.[0], 'number');
  machine.mount(trap);
  t.same((await machine.sample())[usb], [null, null], 'nor reported as missing');
});

t.test('a file system that can no longer be written is faulty, and still measured', async (t) => {
  const machine = new Machine(t);
  const { usb } = machine;
  machine.mountUsb();
  machine.start('/', usb);
  t.same((await machine.sample())[usb], [95, null]);
  machine.mountUsb('rw,emergency_ro');
  t.match((await machine.sample())[usb], [95, /^its file system is read-only; see dmesg/]);
  machine.mountUsb();
  t.same((await machine.sample())[usb], [95, null]);

  machine.setErrors(2);
  await machine.sample(10);
  await until('the count of errors', async () => /^its file system has recorded 2 errors/.test((await machine.sample())[usb]?.[1] ?? ''));
  machine.setErrors(0);
  await machine.sample(10);
  await until('the repair', async () => (await machine.sample())[usb]?.[1] === null);

  machine.writeError = 'disk I/O error';
  t.match(
    await machine.sample(),
    { '/': [40, /^its file system cannot be written: disk I\/O error/], [usb]: [95, null] },
    'the data folder',
  );
  machine.writeError = 'database or disk is full';
  t.same((await machine.sample())['/'], [40, null]);
});

t.test('mount points that are found while others are being saved are saved as well', async (t) => {
  const machine = new Machine(t);
  const [maps, usb] = [join(machine.folder, 'maps'), machine.usb];
  mkdirSync(maps);
  machine.mount(`8:33 / ${maps} rw - ext4 /dev/sdc1 rw`, `8:17 / ${usb} rw - ext4 /dev/sdb1 rw`);
  machine.start(maps, usb);
  await machine.sample();
  await machine.untilSaved({ [usb]: usb, [maps]: maps });
});

t.test('mount points that cannot be saved are saved later', async (t) => {
  const machine = new Machine(t);
  const { usb } = machine;
  rmSync(join(machine.folder, 'data'), { recursive: true });
  machine.mountUsb();
  machine.start(usb);
  await machine.sample();
  await until('the failure', () => machine.logged.length > 0);
  t.same(machine.logged, ['mount points not saved']);
  mkdirSync(join(machine.folder, 'data'));
  await machine.sample(10);
  await machine.untilSaved({ [usb]: usb });
});

t.test('without a table of mounts every path is measured', async (t) => {
  const machine = new Machine(t);
  rmSync(join(machine.folder, 'proc/self/mountinfo'));
  machine.start('/', machine.usb);
  t.same(await machine.sample(), { '/': [40, null], [machine.usb]: [40, null] });
});
