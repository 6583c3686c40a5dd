import t from 'tap';
import { lacksItsMount } from './copies.ts';

t.test('recognizes a folder in which a disk would be mounted', async (t) => {
  const info = [
    '25 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw',
    '30 25 8:17 / /mnt/usb\\040stick rw - vfat /dev/sdb1 rw',
    '31 25 8:33 / /media/robot/disk rw - ext4 /dev/sdc1 rw',
  ].join('\n');
  const cases: readonly (readonly [string, boolean])[] = [
    ['/mnt', true],
    ['/mnt/usb', true],
    ['/mnt/usb stick/backups', false],
    ['/mnt/usb stick', false],
    ['/media/robot', true],
    ['/media/robot/disk/a/b', false],
    ['/media/robot/disk2', true],
    ['/run/media/x', true],
    ['/srv/backups', false],
    ['/mnt2/x', false],
  ];
  for (const [path, lacks] of cases) t.equal(lacksItsMount(path, info), lacks, path);
  t.notOk(lacksItsMount('/mnt/x', `${info}\n40 25 8:49 / /mnt rw - ext4 /dev/sdd1 rw`), '/mnt itself may be one');
});
