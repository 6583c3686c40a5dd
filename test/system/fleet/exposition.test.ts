import { spawnSync } from 'node:child_process';
import t from 'tap';
import { temporaryFolder } from '../../../testkit/folder.ts';
import { MachineTree } from '../../../testkit/machine/machine-tree.ts';
import { writeJobs } from '../../../testkit/ops/ops-jobs.ts';
import { type StatusDocument, sendRequest, startIn } from '../../../testkit/service/rest.ts';

t.test('promtool accepts /metrics without a warning', async (t) => {
  const folder = temporaryFolder(t);
  const machine = new MachineTree(t, 'vm-no-sensors');
  const options = { config: { publish_frequency: 10, alerts: { raise_after_seconds: 0 } }, arguments: machine.arguments };
  const service = await startIn(t, folder, options);
  const check = async (moment: string): Promise<void> => {
    const { body, headers } = await sendRequest(service, 'GET', '/metrics');
    t.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
    const { status, stderr, stdout } = spawnSync('promtool', ['check', 'metrics'], { input: body, encoding: 'utf8' });
    t.equal(`${stdout}${stderr}`, '', moment);
    t.equal(status, 0);
  };
  await check('at the start');
  machine.setMemoryPercent(99);
  await service.until<{ count: number }>('/alerts', ({ count }) => count > 0);
  await check('with an alert');
  writeJobs(folder);
  await service.until<StatusDocument>('/status', ({ host }) => host !== null);
  await check('with jobs and the host');
  const broken = spawnSync('promtool', ['check', 'metrics'], { input: 'edge_health_x{ 1\n', encoding: 'utf8' });
  t.not(broken.status, 0, 'what is wrong is refused');
});
