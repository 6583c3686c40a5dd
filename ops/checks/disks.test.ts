import fc from 'fast-check';
import t from 'tap';
import { type Mount, parseFstab } from '../../src/core/mounts.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { type DiskFacts, evaluateDisk } from './disks.ts';

const ext4: Mount = { id: 1, parent: 0, device: '8:1', root: '/', point: '/', type: 'ext4', options: ['rw'] };
const facts = (more: Partial<DiskFacts> = {}): DiskFacts => ({
  path: '/',
  sizeBytes: 28.8e9,
  freeBytes: 10e9,
  inodes: 1000,
  freeInodes: 500,
  mount: ext4,
  fstab: [],
  errors: 0,
  reported: null,
  isHidden: false,
  ...more,
});

t.test('judges free space', async (t) => {
  t.match(evaluateDisk(facts(), 2000), { name: 'disk /', status: 'OK', message: '10.0 GB of 28.8 GB free' });
  t.match(evaluateDisk(facts({ freeBytes: 0.4e9 }), 2000), {
    status: 'CRITICAL',
    message: '400 MB of 28.8 GB free, 2.0 GB are needed',
    remedy: /remove old files/,
  });
  t.match(evaluateDisk(facts({ freeBytes: 2e9 }), 2000), { status: 'WARNING', message: /soon less than the 2.0 GB/ });
  t.match(evaluateDisk(facts({ freeBytes: 3e9 }), 2000), { status: 'OK' });
  t.match(evaluateDisk(facts({ freeBytes: 0 }), 0), { status: 'OK' }, 'no minimum');
});

t.test('the limits hold for any size', async () => {
  fc.assert(
    fc.property(fc.nat(100_000), fc.nat(1_000_000), (minimum, freeMegabytes) => {
      const { status } = evaluateDisk(facts({ sizeBytes: 1e12, freeBytes: freeMegabytes * 1e6 }), minimum);
      return status === (freeMegabytes < minimum ? 'CRITICAL' : freeMegabytes < 1.5 * minimum ? 'WARNING' : 'OK');
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('on a small file system a tenth of it is enough', async (t) => {
  const boot = (freeMegabytes: number) => facts({ path: '/boot', sizeBytes: 480e6, freeBytes: freeMegabytes * 1e6 });
  t.match(evaluateDisk(boot(389), 2000), { status: 'OK', message: '389 MB of 480 MB free' });
  t.match(evaluateDisk(boot(60), 2000), { status: 'WARNING' });
  t.match(evaluateDisk(boot(40), 2000), { status: 'CRITICAL', message: /48 MB are needed/ });
});

t.test('judges free inodes', async (t) => {
  t.match(evaluateDisk(facts({ freeInodes: 0 }), 2000), { status: 'CRITICAL', message: /no inode is left/ });
  t.match(evaluateDisk(facts({ freeInodes: 19 }), 2000), { status: 'WARNING', message: /19 of 1000 inodes/ });
  t.match(evaluateDisk(facts({ inodes: 0, freeInodes: 0 }), 2000), { status: 'OK' }, 'btrfs has no fixed number');
});

t.test('judges read-only file systems and hidden paths', async (t) => {
  const ro: Mount = { ...ext4, point: '/mnt', options: ['ro', 'errors=remount-ro'] };
  t.match(evaluateDisk(facts({ mount: ro }), 2000), {
    status: 'CRITICAL',
    message: 'its file system is read-only',
    remedy: /remount,rw \/mnt/,
  });
  t.match(evaluateDisk(facts({ mount: ro, fstab: parseFstab('/dev/sda1 /mnt ext4 ro 0 0') }), 2000), { status: 'OK', isNote: true });
  t.match(evaluateDisk(facts({ errors: 2 }), 2000), { status: 'CRITICAL', message: /recorded 2 errors/ });
  t.match(evaluateDisk(facts({ mount: { ...ro, type: 'squashfs' }, freeBytes: 0 }), 2000), { status: 'OK', isNote: true });
  const reported = 'nothing is mounted on /mnt; mount it';
  t.match(evaluateDisk(facts({ reported }), 2000), { status: 'CRITICAL', message: 'nothing is mounted on /mnt', remedy: 'mount it' });
  t.match(evaluateDisk(facts({ isHidden: true }), 2000), { status: 'UNKNOWN', remedy: /ProtectHome=read-only/ });
});
