import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Aggregate } from '../../src/core/ports.ts';
import { isoUtc } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';

const NODES = 50;
const SECONDS = 600;

t.test('50 nodes at 1 Hz: every status is stored, and no alert is raised', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const start = clocks.wallMs;
  const service = await startInProcess(t, folder, clocks);
  const names = Array.from({ length: NODES }, (_, i) => `/robot_${i}/health_monitor`);
  await service.run(SECONDS, (second) => {
    service.measure();
    for (const [i, name] of names.entries()) {
      // Each with a clock of its own, up to a minute off, and values of its own.
      const more = { cpu_percent: (second * (i + 1)) % 100, status: 'OK' as const };
      service.remoteNodes.onHealthStatus(statusOf(name, clocks.wallMs + i * 1000 + i, more));
    }
  });
  const count = SECONDS * NODES;
  t.match(service.remoteNodes.counts(), { statuses: count, duplicates: 0, late: 0, not_stored: 0, refused: 0 });
  t.same(service.published, []);
  for (const name of [names[0], names[49]] as string[]) {
    const from = isoUtc(start - 1000);
    const whole = await service.json<Aggregate>(
      `/health/aggregate?node=${encodeURIComponent(name)}&from=${from}&to=${isoUtc(clocks.wallMs)}`,
    );
    t.ok((whole.samples_received as number) >= SECONDS - 60, `${whole.samples_received} in ${name}`);
    t.equal(whole.longest_gap_seconds, 1);
    const page = await service.json<{ data: HealthStatus[]; count: number }>(
      `/health/history?node=${encodeURIComponent(name)}&from=${from}`,
    );
    t.equal(page.count, SECONDS);
  }
  const { nodes } = await service.json<{ nodes: { period_seconds: number; stale: boolean }[] }>('/status');
  t.equal(nodes.length, NODES + 1);
  t.ok(nodes.every(({ period_seconds, stale }) => period_seconds === 1 && !stale));
});
