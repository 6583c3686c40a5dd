import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import type { HealthStatus } from '../../src/core/health-status.ts';
import type { Aggregate } from '../../src/core/ports.ts';
import { isoUtc } from '../../src/core/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { startGathering, statusOf, TestClocks } from '../../testkit/remote-nodes.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const NODES = 50;
const SECONDS = 2 * 3600;

t.test('50 nodes at 1 Hz for two hours: every status is there, no alert is raised, memory does not grow', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const start = clocks.wallMs;
  const service = await startGathering(t, folder, clocks);
  const names = Array.from({ length: NODES }, (_, i) => `/robot_${i}/health_monitor`);
  const heap: number[] = [];
  const before = process.cpuUsage();
  for (let part = 0; part < 8; part += 1) {
    await service.run(SECONDS / 8, (second) => {
      service.measure();
      for (const [i, name] of names.entries()) {
        // Each with a clock of its own, up to a minute off, and values of its own.
        const more = { cpu_percent: (second * (i + 1)) % 100, status: 'OK' as const };
        service.gathering.onHealthStatus(statusOf(name, clocks.wallMs + i * 1000 + i, more));
      }
    });
    collectGarbage();
    heap.push(process.memoryUsage().heapUsed / 1e6);
  }
  const { user, system } = process.cpuUsage(before);
  const count = SECONDS * NODES;
  t.comment(
    `${((user + system) / count).toFixed(0)} µs CPU a status, the store's thread included; heap ${heap.map((mb) => mb.toFixed(0)).join(', ')} MB`,
  );
  t.match(service.gathering.counts(), { statuses: count, duplicates: 0, late: 0, not_stored: 0, refused: 0 });
  t.same(service.published, []);
  t.ok((heap.at(-1) as number) < (heap[1] as number) + 10, 'memory');
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
  const { nodes } = await service.json<{ nodes: { period_seconds: number; silent: boolean }[] }>('/status');
  t.equal(nodes.length, NODES + 1);
  t.ok(nodes.every(({ period_seconds, silent }) => period_seconds === 1 && !silent));
  const stopping = Date.now();
  await service.stop();
  t.comment(`stopped within ${Date.now() - stopping} ms`);
});
