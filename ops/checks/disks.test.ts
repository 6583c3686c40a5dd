import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { type Mount, mountOf, parseMounts } from '../lib/mounts.ts';
import { type DiskFacts, evaluateDisk, isReadOnlyByIntent } from './disks.ts';

const ext4: Mount = { point: '/', type: 'ext4', options: ['rw'] };
const facts = (more: Partial<DiskFacts> = {}): DiskFacts => ({
  path: '/',
  sizeBytes: 28.8e9,
  freeBytes: 10e9,
  inodes: 1000,
  freeInodes: 500,
  mount: ext4,
  isReadOnlyByIntent: false,
  isHidden: false,
  ...more,
});

t.test('judges free space', async (t) => {
  t.match(evaluateDisk(facts(), 2000), { name: 'disk /', status: 'OK', message: '10.0 of 28.8 GB free' });
  t.match(evaluateDisk(facts({ freeBytes: 0.4e9 }), 2000), {
    status: 'CRITICAL',
    message: '0.4 of 28.8 GB free, 2.0 GB are needed',
    remedy: /remove old files/,
  });
  t.match(evaluateDisk(facts({ freeBytes: 2e9 }), 2000), { status: 'WARNING', message: /soon less than the 2.0 GB/ });
  t.match(evaluateDisk(facts({ freeBytes: 3e9 }), 2000), { status: 'OK' });
  t.match(evaluateDisk(facts({ freeBytes: 0 }), 0), { status: 'OK' }, 'no minimum');
});

t.test('the limits hold for any size', async () => {
  fc.assert(
    fc.property(fc.nat(100_000), fc.nat(1_000_000), (minimum, freeMegabytes) => {
      const { status } = evaluateDisk(facts({ freeBytes: freeMegabytes * 1e6 }), minimum);
      return status === (freeMegabytes < minimum ? 'CRITICAL' : freeMegabytes < 1.5 * minimum ? 'WARNING' : 'OK');
    }),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('judges free inodes', async (t) => {
  t.match(evaluateDisk(facts({ freeInodes: 0 }), 2000), { status: 'CRITICAL', message: /no inode is left/ });
  t.match(evaluateDisk(facts({ freeInodes: 19 }), 2000), { status: 'WARNING', message: /19 of 1000 inodes/ });
  t.match(evaluateDisk(facts({ inodes: 0, freeInodes: 0 }), 2000), { status: 'OK' }, 'btrfs has no fixed number');
});

t.test('judges read-only file systems and hidden paths', async (t) => {
  const ro: Mount = { point: '/mnt', type: 'ext4', options: ['ro', 'errors=remount-ro'] };
  t.match(evaluateDisk(facts({ mount: ro }), 2000), {
    status: 'CRITICAL',
    message: 'its file system is read-only',
    remedy: /remount,rw \/mnt/,
  });
  t.match(evaluateDisk(facts({ mount: ro, isReadOnlyByIntent: true }), 2000), { status: 'OK', isNote: true });
  t.match(evaluateDisk(facts({ mount: { ...ro, type: 'squashfs' }, freeBytes: 0 }), 2000), { status: 'OK', isNote: true });
  t.match(evaluateDisk(facts({ isHidden: true }), 2000), { status: 'UNKNOWN', remedy: /ProtectHome=read-only/ });
});

const MOUNTINFO = `22 1 8:2 / / ro,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro
30 22 0:25 / /mnt/usb\\040stick rw shared:2 master:1 - vfat /dev/sdb1 ro,utf8
31 22 0:26 / /mnt rw - tmpfs tmpfs rw,size=1k
32 22 0:27 / /mnt rw - ext4 /dev/sdc1 rw
33 22 0:28 / /data rw - btrfs /dev/sdd1 rw,subvol=/a - b`;

t.test('finds the mount of a path', async (t) => {
  const mounts = parseMounts(MOUNTINFO);
  t.equal(mounts.length, 5);
  t.match(mountOf('/var/lib', mounts), { point: '/', options: ['rw', 'errors=remount-ro'] }, 'a sandbox shows it read-only; it is not');
  t.match(mountOf('/mnt/usb stick/x', mounts), { type: 'vfat', options: ['ro', 'utf8'] });
  t.match(mountOf('/mnt/other', mounts), { type: 'ext4' }, 'of two on one point the later');
  t.match(mountOf('/mntx', mounts), { point: '/' });
  t.equal(mountOf('/', []), null);
  t.ok(mountOf('/', parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'))), 'of this machine');
  fc.assert(
    fc.property(fc.string(), (text) => Array.isArray(parseMounts(text))),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('fstab shows whether a file system is read-only by intent', async (t) => {
  const fstab =
    '# /dev/sda1 /boot ext4 ro 0 0\nPARTUUID=1-02  /  ext4  defaults,ro,noatime 0 1\n/dev/sdb1 /mnt/usb\\040stick vfat rw 0 0\n';
  t.ok(isReadOnlyByIntent('/', fstab));
  t.notOk(isReadOnlyByIntent('/boot', fstab));
  t.notOk(isReadOnlyByIntent('/mnt/usb stick', fstab));
});
