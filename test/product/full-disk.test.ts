import { spawnSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import t from 'tap';
import { EventReader } from '../../testkit/events.ts';
import { RunningService, temporaryFolder } from '../../testkit/service.ts';

interface Status {
  storage: { state: string; error: string | null; samples_pending: number; samples_lost: number };
  publish: { samples: number };
}

const mount = (folder: string): boolean => spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', folder]).status === 0;

function fill(folder: string): void {
  for (let n = 0; n < 4; n += 1) {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail > 0) writeFileSync(`${folder}/ballast-${n}`, Buffer.alloc(bavail * bsize));
  }
}

t.test(
  'a full disk stops neither measuring, alerts nor REST, is said, and heals',
  { skip: process.getuid?.() !== 0 && 'needs root to mount a small tmpfs' },
  async (t) => {
    const folder = temporaryFolder();
    t.teardown(folder.remove);
    const data = temporaryFolder();
    t.ok(mount(data.path), 'a small tmpfs');
    t.teardown(() => {
      spawnSync('umount', [data.path]);
      data.remove();
    });
    // At 200 Hz a segment fills quickly, so that writing is tried soon.
    const config = { publish_frequency: 200, alerts: { raise_after_seconds: 0, clear_after_seconds: 0 } };
    const service = await RunningService.start(folder.path, { config, dataPath: data.path });
    t.teardown(() => service.end());
    const events = await EventReader.open(service.url);
    await service.until<Status>('/status', ({ publish }) => publish.samples > 50);

    fill(data.path);
    const full = await service.until<Status>('/status', ({ storage }) => storage.state === 'degraded', 120);
    t.match(full.storage.error, /full|space/i);
    await service.until<Status>('/status', ({ publish }) => publish.samples > full.publish.samples + 200);
    t.equal((await service.get('/health')).status, 200, 'still measuring');
    const published = events.health().map(({ timestamp }) => timestamp);

    for (let n = 0; n < 4; n += 1) rmSync(`${data.path}/ballast-${n}`, { force: true });
    const healed = await service.until<Status>('/status', ({ storage }) => storage.state === 'ok', 30);
    t.equal(healed.storage.samples_lost, 0);
    const last = published.at(-1) as string;
    const first = published[0] as string;
    const { samples_received } = await service.json<{ samples_received: number }>(
      `/health/aggregate?from=${first}&to=${new Date(Date.parse(last) + 1).toISOString()}`,
    );
    t.equal(samples_received, published.length, 'every published sample is in the store');
  },
);
