import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import t from 'tap';
import type { Alert } from '../../../src/core/alert.ts';
import { startService } from '../../../testkit/service/rest.ts';

// The one test with the load of the machine itself; alert timing and SIGKILL are tested on a recorded machine (test/product/alerting).

t.test('the load of this machine raises a CRITICAL alert, and ends it', async (t) => {
  // With thresholds that a busy processor exceeds and an idle one does not; other programs may run beside the test.
  const thresholds = { cpu: { warning: 98, critical: 99 } };
  const service = await startService(t, { config: { thresholds, alerts: { raise_after_seconds: 1, clear_after_seconds: 1 } } });
  const loops = Array.from({ length: availableParallelism() }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  const end = (): void => {
    for (const loop of loops) loop.kill('SIGKILL');
  };
  t.teardown(end);
  const isCritical = ({ metric, severity }: Alert): boolean => metric === 'cpu_percent' && severity === 'CRITICAL';
  const { data } = await service.until<{ data: Alert[] }>('/alerts?resolved=false', (open) => open.data.some(isCritical));
  const { alert_id } = data.find(isCritical) as Alert;
  end();
  const resolved = await service.until<{ data: Alert[] }>('/alerts?metric=cpu_percent', (all) => all.data.every((alert) => alert.resolved));
  t.ok(resolved.data.some((alert) => alert.alert_id === alert_id));
});
