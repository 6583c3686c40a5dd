import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { fileSystemFault, fileSystemOf, fstabMountPoint, type Mount, mountOf, parseFstab, parseMounts, unmountedPoint } from './mounts.ts';

const ROOT = '22 1 8:2 / / ro,relatime shared:1 - ext4 /dev/sda2 rw,errors=remount-ro\n';
const of = (lines: string): Mount[] => parseMounts(ROOT + lines);

t.test('finds the mount of a path as the kernel does', async (t) => {
  const mounts = of(`30 32 0:25 / /mnt/usb\\040stick rw shared:2 master:1 - vfat /dev/sdb1 ro,utf8
31 22 0:26 / /mnt rw - tmpfs tmpfs rw,size=1k
32 31 0:27 / /mnt rw - ext4 /dev/sdc1 rw
34 22 0:29 / /mnt/hidden rw - ext4 /dev/sde1 rw
33 22 0:28 /a /data rw - btrfs /dev/sdd1 rw,subvol=/a - b`);
  t.equal(mounts.length, 6);
  t.match(mountOf('/var/lib', mounts), { point: '/', options: ['rw', 'errors=remount-ro'] }, 'a sandbox shows it read-only; it is not');
  t.match(mountOf('/mnt/usb stick/x', mounts), { type: 'vfat', options: ['ro', 'utf8'] });
  t.match(mountOf('/mnt/other', mounts), { device: '0:27' }, 'of two on one point, the upper one');
  t.match(mountOf('/mnt/hidden', mounts), { device: '0:27' }, 'not a mount that a later one hides');
  t.match(mountOf('/mntx', mounts), { point: '/' });
  t.match(mountOf('/', parseMounts('1 1 0:2 / / rw - rootfs rootfs rw')), { type: 'rootfs' }, 'a mount that is its own parent');
  t.equal(mountOf('/', []), null);
  t.ok(mountOf('/', parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'))), 'of this machine');
  fc.assert(
    fc.property(fc.string(), (text) => Array.isArray(parseMounts(text))),
    { numRuns: runs(100, 2000), seed: SEED },
  );
});

t.test('a folder that is mounted on itself belongs to the file system around it', async (t) => {
  const mounts = of(`30 22 8:2 /var/lib/edge-health /var/lib/edge-health rw - ext4 /dev/sda2 rw
31 22 8:2 /srv/data /data rw - ext4 /dev/sda2 rw
32 22 8:17 / /media/usb rw - ext4 /dev/sdb1 rw
33 32 8:17 / /media/usb rw - ext4 /dev/sdb1 rw`);
  t.match(fileSystemOf('/var/lib/edge-health/x', mounts), { point: '/' }, 'ReadWritePaths= of a unit');
  t.match(fileSystemOf('/data', mounts), { point: '/data' }, 'another folder is mounted there');
  t.match(fileSystemOf('/media/usb', mounts), { id: 32 });
});

t.test('fstab has mount points, mounted at boot or by hand', async (t) => {
  const fstab = parseFstab(`# /dev/sda9 /old ext4 defaults 0 0
UUID=1-02 / ext4 defaults 0 1
LABEL=data  /data\t ext4 defaults,nofail 0 2
/dev/sdb1 /media/my\\040disk/ vfat rw 0 0
/srv/pool /data/pool none bind 0 0
/dev/sdc1 /media/usb auto noauto,user 0 0
/dev/sda3 none swap sw 0 0
/home /home none bind,nosuid 0 0
`);
  t.equal(fstabMountPoint('/data/eh', fstab), '/data');
  t.equal(fstabMountPoint('/data/pool/x', fstab), '/data/pool', 'the innermost');
  t.equal(fstabMountPoint('/media/my disk', fstab), '/media/my disk');
  t.equal(fstabMountPoint('/media/usb', fstab), '/media/usb');
  for (const path of ['/', '/old', '/datax', '/home', '/none']) t.equal(fstabMountPoint(path, fstab), null, path);
});

t.test('a path whose mount is gone shows the file system below it', async (t) => {
  const usb = '30 22 8:17 / /media/usb rw - ext4 /dev/sdb1 rw\n';
  t.equal(unmountedPoint('/media/usb/x', ['/media/usb'], of(usb)), null);
  t.equal(unmountedPoint('/media/usb/x', ['/media/usb'], of('')), '/media/usb');
  t.equal(unmountedPoint('/media/usb', [null, '/media/usb'], of('')), '/media/usb');
  t.equal(unmountedPoint('/media/usb', [null, null], of('')), null);
  t.equal(unmountedPoint('/media/usb', ['/media'], of(usb)), null, 'its own file system is there');
  const self = '30 22 8:2 /media/usb /media/usb rw - ext4 /dev/sda2 rw\n';
  t.equal(unmountedPoint('/media/usb', ['/media/usb'], of(self)), '/media/usb', 'a sandbox mounted the empty folder on itself');
});

t.test('a file system that can no longer be written is faulty, unless it is meant to be read-only', async (t) => {
  const [root] = of('') as [Mount];
  const mount = (options: string, more: Partial<Mount> = {}): Mount => ({ ...root, point: '/mnt', options: options.split(','), ...more });
  const fstab = parseFstab('PARTUUID=1-02  /  ext4  defaults,ro,noatime 0 1\n/dev/sdb1 /mnt vfat rw 0 0\n');
  t.equal(fileSystemFault(mount('rw,errors=remount-ro'), fstab, 0), null);
  t.match(fileSystemFault(mount('ro'), fstab, 0), { what: 'its file system is read-only', remedy: /remount,rw \/mnt$/ });
  t.match(fileSystemFault(mount('rw,emergency_ro'), fstab, 0), { what: 'its file system is read-only', remedy: /fsck/ }, 'Linux 6.15');
  t.match(fileSystemFault(mount('rw,emergency_ro'), fstab, 1), { what: 'its file system has recorded 1 error and is read-only' });
  t.match(fileSystemFault(mount('rw'), fstab, 2), { what: 'its file system has recorded 2 errors', remedy: /fsck/ }, 'Linux 6.12');
  t.equal(fileSystemFault(mount('ro', { point: '/' }), fstab, 0), null, 'read-only in fstab');
  t.match(fileSystemFault(mount('rw', { point: '/' }), fstab, 1), { what: /recorded 1 error/ }, 'remounted for writing');
  t.equal(fileSystemFault(mount('ro', { type: 'squashfs' }), fstab, 0), null);
});
