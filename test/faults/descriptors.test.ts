/** Faults of file descriptors: none is free, because of a limit, a leak or clients. */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { DEBUGGER, dropIn, mainPidOnHost } from '../../testkit/container/appliance.ts';
import { LOAD_METRIC } from '../../testkit/weeks/alert-load.ts';
import type { FaultBench } from './support/bench.ts';
import { faultsOf } from './support/fault.ts';

const fault = faultsOf('descriptors');

const USUAL_LIMIT = 16_384;

/** Checks that statuses and alerts are published for this many seconds. */
async function checkContinues(bench: FaultBench, seconds: number): Promise<void> {
  const fromMs = Date.now();
  await bench.checkPublishing(seconds);
  for (const resolved of [false, true]) {
    await bench.checkEventually(`an alert is ${resolved ? 'resolved' : 'raised'} meanwhile`, () =>
      bench.stream.alerts.some(({ it }) => it.metric === LOAD_METRIC && it.resolved === resolved && Date.parse(it.timestamp) > fromMs),
    );
  }
}

async function limitDescriptors({ machine }: FaultBench, limit: number): Promise<void> {
  execFileSync('prlimit', [`--nofile=${limit}:`, '--pid', String(await mainPidOnHost(machine))]);
}

/** A new descriptor is always the lowest free number, which must be below the limit: from here on there is none. */
async function forbidDescriptors(bench: FaultBench): Promise<void> {
  const taken = new Set(readdirSync(`/proc/${await mainPidOnHost(bench.machine)}/fd`).map(Number));
  let lowest = 0;
  while (taken.has(lowest)) lowest += 1;
  bench.teardown(() => limitDescriptors(bench, USUAL_LIMIT));
  await limitDescriptors(bench, lowest);
}

fault(
  'no-descriptors',
  {
    core: true,
    expected: 'no file or connection can be opened any more: measuring, publishing and alerting continue; undone, all is as before',
  },
  async (bench) => {
    const before = await bench.serviceProcess();
    await bench.machine.http('/status');
    await forbidDescriptors(bench);
    await checkContinues(bench, 12);
    await bench.checkSameProcess(before);
    const recoverySeconds = await bench.recoverAfter(() => limitDescriptors(bench, USUAL_LIMIT), 10);
    await bench.checkSameProcess(before);
    return bench.finish({ observed: 'all continued with what was open; undone, REST answered again', recoverySeconds });
  },
);

fault('no-descriptors-minutes', { expected: 'for more than a minute, then killed: nothing that was published is lost' }, async (bench) => {
  const before = await bench.serviceProcess();
  await forbidDescriptors(bench);
  await checkContinues(bench, 75);
  await bench.checkSameProcess(before);
  const recoverySeconds = await bench.recoverAfter(() => bench.appliance.signal('KILL'), 10);
  await bench.checkRestarted(before);
  return bench.finish({ observed: 'all continued with what was open; killed, it came back with all its data', recoverySeconds });
});

const HOARD_SECONDS = 15;

fault(
  'descriptors-used-up',
  {
    boot: { files: { [dropIn('debugger')]: DEBUGGER } },
    expected: 'files opened in it until the kernel refuses: measuring, publishing and alerting continue; closed, all is as before',
  },
  async (bench) => {
    const before = await bench.serviceProcess();
    await bench.appliance.inject(`(() => {
      const fs = process.getBuiltinModule('node:fs');
      const hoard = [];
      const timer = setInterval(() => { try { for (;;) hoard.push(fs.openSync('/dev/null')); } catch {} }, 50);
      setTimeout(() => { clearInterval(timer); for (const descriptor of hoard) fs.closeSync(descriptor); }, ${HOARD_SECONDS * 1000});
    })()`);
    const injectedMs = Date.now();
    await checkContinues(bench, HOARD_SECONDS - 1);
    const recoverySeconds = Math.max(0, await bench.recovered(injectedMs + HOARD_SECONDS * 1000, 10));
    await bench.checkSameProcess(before);
    return bench.finish({ observed: 'all continued with what was open; closed, REST answered again', recoverySeconds });
  },
);

const LIMIT = 64;
const CLIENTS = 300;

fault(
  'descriptors-of-clients',
  {
    boot: { files: { [dropIn('few-descriptors')]: `[Service]\nLimitNOFILE=${LIMIT}\n` } },
    expected: `LimitNOFILE=${LIMIT} and ${CLIENTS} clients that keep their connections: measuring, publishing and alerting continue; closed, REST answers`,
  },
  async (bench) => {
    const before = await bench.serviceProcess();
    const port = Number(new URL(await bench.machine.url()).port);
    const clients: Socket[] = [];
    const disconnect = (): void => {
      for (const client of clients) client.destroy();
    };
    bench.teardown(disconnect);
    for (let n = 0; n < CLIENTS; n += 1) {
      const client = connect(port, '127.0.0.1');
      client.on('error', () => undefined).write('GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n');
      client.resume();
      clients.push(client);
    }
    await checkContinues(bench, 12);
    await bench.checkSameProcess(before);
    const recoverySeconds = await bench.recoverAfter(disconnect, 10);
    await bench.checkSameProcess(before);
    return bench.finish({ observed: 'all continued with what was open; when the clients had gone REST answered at once', recoverySeconds });
  },
);
