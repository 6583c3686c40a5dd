import { existsSync } from 'node:fs';
import t from 'tap';
import { stringify } from 'yaml';
import { type SeenRun, ServiceObserver } from '../../../harness/observe/service-observer.ts';
import type { KnownRun } from '../../../harness/observe/supervisor.ts';
import { type RunProgram, UnitSupervisor } from '../../../harness/observe/unit-supervisor.ts';
import { RestClient } from '../../../src/client/rest.ts';
import { readBootId } from '../../../src/core/platform/boot-id.ts';
import { Appliance, CONFIG, DEBUGGER, dropIn, UNIT } from '../../../testkit/container/appliance.ts';
import { containersUnavailable } from '../../../testkit/container/images.ts';

/** The harness derives the cause of the end of a run from systemd and its journal. */

t.setTimeout(900_000);
const skip = containersUnavailable();

const NODE = 'health_monitor';
/** Without a start limit, because the starts follow each other quickly. */
const QUICK = '[Unit]\nStartLimitIntervalSec=0\n[Service]\nTimeoutAbortSec=2\nMemorySwapMax=0\n';
const HOARD = 'globalThis.hoard = []; setInterval(() => hoard.push(Buffer.alloc(16 << 20, 1)), 20);';

t.test('the cause of the end of each run is found', { skip }, async (t) => {
  const files = { [dropIn('debugger')]: DEBUGGER, [dropIn('quick')]: QUICK };
  const appliance = await Appliance.boot(t, { suite: 'bookworm', files });
  const { machine } = appliance;
  const url = await machine.url();
  const runProgram: RunProgram = async (file, parameters) => {
    const { code, stdout } = await machine.run([file, ...parameters]);
    return code === 0 ? stdout : null;
  };
  const inside = (path: string): string => `/proc/${machine.pid1}/root${path}`;
  const observe = (before: KnownRun | null): ServiceObserver =>
    new ServiceObserver({
      rest: new RestClient({ base: url, token: null }),
      node: NODE,
      supervisor: new UnitSupervisor({ unit: UNIT, environment: process.env, runProgram }),
      before,
      bootId: readBootId(inside('/proc')),
      monotonicSeconds: () => performance.now() / 1000,
      procRoot: inside('/proc'),
      groupRoot: inside('/sys/fs/cgroup'),
    });
  let observer = observe(null);
  /** The next run of the service that is observed. */
  const nextRun = async (): Promise<SeenRun> => {
    let run: SeenRun | null = null;
    await machine.until(async () => {
      run = (await observer.read())?.run ?? null;
      return run !== null;
    }, 120);
    // REST responds before systemd is notified; the watchdog waits for that.
    await machine.until(async () => (await machine.show(UNIT, 'ActiveState')) === 'active', 120);
    return run as unknown as SeenRun;
  };
  const began = performance.now();
  const done = (what: string): void => t.comment(`${what}: ${((performance.now() - began) / 1000).toFixed(1)} s`);

  const first = await nextRun();
  t.match(first, { cause: 'first', detail: '', unseen: 0, pid: await appliance.mainPid(), invocation: /^[0-9a-f]{32}$/ });
  const { reading } = (await observer.read()) ?? {};
  t.equal(reading?.cpu_from, 'group');
  t.ok((reading?.cpu_seconds ?? 0) > 0, `${reading?.cpu_seconds} s of CPU time`);
  const own = (await appliance.status()).process;
  const [resident = 0] = reading?.resident_bytes ?? [];
  const ratio = resident / own.resident_memory_bytes;
  t.ok(ratio > 0.5 && ratio < 2, `${resident} of procfs, ${own.resident_memory_bytes} by itself`);
  t.ok((reading?.group?.anon_bytes ?? 0) > 0 && (reading?.group?.memory_bytes ?? 0) >= (reading?.group?.anon_bytes ?? 0));
  t.equal(reading?.group?.restarts, 0);

  await appliance.signal('KILL');
  t.match(await nextRun(), { cause: 'signal', detail: 'SIGKILL', unseen: 0 });
  done('SIGKILL');

  for (const _ of [1, 2]) {
    const beganMs = Date.now();
    await appliance.signal('KILL');
    await appliance.backAfter(beganMs, 120);
  }
  t.match(await nextRun(), { cause: 'signal', detail: 'SIGKILL', unseen: 1 }, 'one that was not observed');
  done('twice');

  await machine.sh(`kill -SEGV ${await appliance.mainPid()}`);
  t.match(await nextRun(), { cause: 'signal', detail: 'SIGSEGV', unseen: 0 }, 'its unit allows no core');
  done('SIGSEGV');

  await appliance.signal('STOP');
  t.match(await nextRun(), { cause: 'watchdog', unseen: 0 });
  done('watchdog');

  await machine.systemctl('restart', UNIT);
  t.match(await nextRun(), { cause: 'stopped', detail: '', unseen: 0 });
  t.equal((await observer.read())?.reading.group?.restarts, 0, 'systemd counts from 0');
  done('restart');

  await machine.sh(`kill -TERM ${await appliance.mainPid()}`);
  await machine.until(async () => (await machine.show(UNIT, 'ActiveState')) === 'inactive', 120);
  await machine.systemctl('start', UNIT);
  t.match(await nextRun(), { cause: 'exit', detail: 'it exited without an error', unseen: 0 });
  done('SIGTERM');

  await appliance.inject(HOARD);
  // Control groups of version 1 report nothing to systemd, and a container has no kernel messages.
  const isReported = existsSync(inside('/sys/fs/cgroup/cgroup.controllers'));
  t.match(await nextRun(), { cause: isReported ? 'oom-kill' : 'signal', detail: 'SIGKILL', unseen: 0 });
  done('out of memory');

  const config = await machine.read(CONFIG);
  await machine.write(CONFIG, stringify({ thresholds: { cpu: { warning: 'high' } } }));
  await machine.run(['systemctl', 'restart', UNIT]);
  t.equal(await observer.read(), null, 'no response');
  await machine.write(CONFIG, config);
  await machine.systemctl('start', UNIT);
  t.match(await nextRun(), { cause: 'exit', detail: 'exit status 78', unseen: 1 }, 'a start that failed is a run too');
  done('configuration');

  await machine.systemctl('stop', UNIT);
  await machine.sh(`sed -i 's/"version": "[^"]*"/"version": "99.0.0"/' /usr/lib/edge-health/package.json`);
  await machine.systemctl('start', UNIT);
  const upgraded = await nextRun();
  t.match(upgraded, { cause: 'upgrade', detail: `${first.version} → 99.0.0`, version: '99.0.0', unseen: 0 });
  done('upgrade');

  const { started, version, pid, invocation } = upgraded;
  const known: KnownRun = { started, version, pid, invocation, restarts: 0, bootId: readBootId(inside('/proc')) };
  observer = observe(known);
  t.match(await observer.read(), { run: null }, 'an observer that resumes finds the same run');
  await appliance.signal('KILL');
  observer = observe(known);
  t.match(await nextRun(), { cause: 'signal', detail: 'SIGKILL', unseen: 0 }, 'and one that ended in the monitoring gap');
  await machine.reboot();
  observer = observe(known);
  t.match(await nextRun(), { cause: 'reboot', unseen: 0 });
  done('reboot');
});
