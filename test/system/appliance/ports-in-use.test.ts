import t from 'tap';
import { Appliance, UNIT } from '../../../testkit/container/appliance.ts';
import type { Container } from '../../../testkit/container/container.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';

t.setTimeout(600_000);

const NODE = '/usr/lib/edge-health/runtime/bin/node';

/** Another user of the machine runs a program in Node until `holder` is stopped; it prints a line once it holds the port. */
async function holds(machine: Container, code: string): Promise<void> {
  await machine.sh(`systemd-run --quiet --collect --unit=holder --uid=nobody --property=StandardOutput=journal ${NODE} -e "${code}"`);
  await machine.until(
    async () => (await machine.journal('holder')).includes('held'),
    60,
    () => 'the port is not held',
  );
}

const HOLDS_TCP = "require('net').createServer(s => s.end()).listen(5000, () => console.log('held'))";
const HOLDS_UDP = "require('dgram').createSocket('udp4').bind(7400, () => console.log('held'))";

t.test(
  'a user who takes the ports during a restart stops neither the service nor its alerts',
  { skip: containersUnavailable() },
  async (t) => {
    const appliance = await Appliance.boot(t, { suite: 'bookworm', config: { alerts: { clear_after_seconds: 1 } } });
    const { machine } = appliance;
    const statusText = (text: string): Promise<void> =>
      machine.until(
        async () => (await machine.show(UNIT, 'StatusText')).includes(text),
        60,
        () => `the status line has no "${text}"`,
      );
    const restartWhileHeld = async (code: string): Promise<void> => {
      await machine.systemctl('stop', UNIT);
      await holds(machine, code);
      await machine.systemctl('start', UNIT);
      t.equal(await machine.show(UNIT, 'ActiveState'), 'active');
    };

    await t.test('TCP 5000', async (t) => {
      const begin = Date.now();
      await restartWhileHeld(HOLDS_TCP);
      await statusText('REST API not listening: port 5000 is in use; stop the other program or set another rest.port');
      await machine.until(
        async () => (await machine.journal(UNIT)).includes('alert ERROR metric=rest_api'),
        60,
        () => 'no alert',
      );
      t.match(await machine.run(['edge-health', 'status'], { user: 'nobody' }), {
        code: 2,
        stdout: /ERROR {2}rest_api [\s\S]*REST API +not listening: port 5000 is in use/,
      });
      await machine.systemctl('stop', 'holder');
      await appliance.measures();
      await machine.untilJson<{ data: { resolved: boolean }[] }>('/alerts?metric=rest_api', ({ data }) =>
        data.every(({ resolved }) => resolved),
      );
      t.equal(await appliance.restarts(), 0, 'by itself');
      const measured = (await appliance.history()).filter((ms) => ms > begin);
      t.ok(measured.length > 5, `${measured.length} samples of the time without REST`);
    });

    await t.test('UDP 7400', async (t) => {
      await restartWhileHeld(HOLDS_UDP);
      await appliance.measures();
      const { metric, severity } = await appliance.alerted('ros_graph');
      t.same([metric, severity], ['ros_graph', 'ERROR']);
      t.match((await appliance.status()).ros.problem, /cannot join the ROS 2 graph: .*7400/);
      await statusText('not on the ROS 2 graph: cannot join');
      await machine.systemctl('stop', 'holder');
      await machine.until(
        async () => (await appliance.openAlerts('ros_graph')).length === 0,
        60,
        () => 'the alert stays open',
      );
      t.equal((await appliance.status()).ros.problem, null);
      t.equal(await appliance.restarts(), 0, 'by itself');
    });
  },
);
