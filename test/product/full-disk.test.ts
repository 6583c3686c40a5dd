import t from 'tap';
import { sandboxProblem } from '../../src/core/files/data-folder.ts';
import { MachineTree } from '../../testkit/machine/machine-tree.ts';
import { SmallDisk, whyNotMountable } from '../../testkit/machine/small-disk.ts';
import { EventReader } from '../../testkit/service/events.ts';
import { type StatusDocument, startService } from '../../testkit/service/rest.ts';

t.test('a full disk stops neither sampling, alerts nor REST, is reported, and heals', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  const machine = new MachineTree(t, 'pi5');
  const config = { publish_frequency: 20, alerts: { raise_after_seconds: 0, clear_after_seconds: 0 } };
  const service = await startService(t, { config, dataPath: disk.folder, arguments: machine.arguments });
  const events = await EventReader.open(service.url);
  await events.untilCount(10);

  disk.fill();
  // An alert is written at once, samples only after a while.
  machine.setMemoryPercent(97);
  const full = await service.until<StatusDocument>('/status', ({ storage }) => storage.state === 'degraded');
  t.match(full.storage.error, /full|space/i);
  const raised = await events.untilAlert(({ severity }) => severity === 'CRITICAL');
  t.match(raised, { metric: 'memory_percent', value: 97, resolved: false });
  await service.until<StatusDocument>('/status', ({ publish }) => publish.samples > full.publish.samples + 20);
  t.equal((await service.get('/health')).status, 200, 'still sampling');
  t.match(await service.json('/alerts?resolved=false'), { count: 1, data: [raised] }, 'the alert is served');

  disk.free();
  const healed = await service.until<StatusDocument>('/status', ({ storage }) => storage.state === 'ok');
  t.equal(healed.storage.samples_lost, 0);
  const published = events.health().map(({ timestamp }) => timestamp);
  const [from, last] = [published[0] as string, published.at(-1) as string];
  const to = new Date(Date.parse(last) + 1).toISOString();
  const { samples_received } = await service.json<{ samples_received: number }>(`/health/aggregate?from=${from}&to=${to}`);
  t.equal(samples_received, published.length, 'every published sample is in the store');
  t.equal(await service.end(), 0);
});

t.test('a data folder to which the unit may not write is reported with the drop-in', { skip: whyNotMountable() ?? false }, async (t) => {
  const disk = new SmallDisk(t);
  disk.makeReadOnly();
  const config = { publish_frequency: 20, alerts: { raise_after_seconds: 0 } };
  const machine = new MachineTree(t, 'pi5');
  machine.setMemoryPercent(97); // A change of an alert is a write, too.
  const environment = { STATE_DIRECTORY: '/var/lib/edge-health' };
  const service = await startService(t, { config, dataPath: disk.folder, arguments: machine.arguments, environment });
  const { storage } = await service.until<StatusDocument>('/status', ({ open_alerts }) => open_alerts.CRITICAL === 1);
  t.equal(storage.state, 'degraded');
  t.match(storage.error, sandboxProblem(disk.folder));
});
