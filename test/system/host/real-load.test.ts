import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import t from 'tap';
import type { Alert } from '../../../src/core/alerts/alert.ts';
import { startService } from '../../../testkit/service/rest.ts';

// The only test with the load of the machine itself; alert timing, the end of alerts and SIGKILL are tested on a recorded machine
// (test/product/alerting).

t.test('the load of this machine raises a CRITICAL alert', async (t) => {
  const thresholds = { cpu: { warning: 98, critical: 99 } };
  const service = await startService(t, { config: { thresholds, alerts: { raise_after_seconds: 1, clear_after_seconds: 1 } } });
  const loops = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  t.teardown(() => {
    for (const loop of loops) loop.kill('SIGKILL');
  });
  // Not that it is resolved: other programs may keep the processors busy.
  const isCritical = ({ metric, severity }: Alert): boolean => metric === 'cpu_percent' && severity === 'CRITICAL';
  const { data } = await service.until<{ data: Alert[] }>('/alerts?resolved=false', (open) => open.data.some(isCritical));
  t.match(data.find(isCritical), { threshold: 99, resolved: false });
});
