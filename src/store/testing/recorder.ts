import { writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isoUtc } from '../../core/time/time.ts';
import { Store } from '../store.ts';
import { REAL_TIMERS } from '../thread/worker-client.ts';

// A program for kill tests: records samples and alerts and prints each once it is recorded. Its minutes pass in a fifth of a second, so
// that a kill can hit every stage of writing. Arguments: data folder, folder for the spool, time of the first sample in milliseconds.

const [, , dataPath = '', runtime = '', firstMs = ''] = process.argv;
const NODE = 'health_monitor';
const FASTER = 300;

/** Writes to the pipe synchronously, waiting for a slow reader. */
function say(text: string): void {
  for (;;) {
    try {
      writeSync(1, text);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

const store = new Store({
  dataPath,
  maxBytes: 64e6,
  node: NODE,
  hertz: 1,
  worker: new URL('../thread/worker.ts', import.meta.url),
  environment: { RUNTIME_DIRECTORY: runtime },
  log: (level, message) => say(`log ${level} ${message}\n`),
  monotonicSeconds: () => (performance.now() / 1000) * FASTER,
  onLateOpen: () => undefined,
  // On a busy machine the disk must not count as hanging.
  timers: { ...REAL_TIMERS, nowSeconds: () => 0 },
});

await store.start();
for (let i = 0; ; i += 1) {
  const timestampMs = Number(firstMs) + i * 1001;
  const timestamp = isoUtc(timestampMs);
  const status = {
    cpu_percent: i / 100,
    memory_percent: 1,
    disk_percent: 1,
    temperature: null,
    status: 'OK' as const,
    node_name: NODE,
    timestamp,
  };
  store.recordHealth(status, JSON.stringify(status), timestampMs);
  say(`sample ${timestampMs}\n`);
  if (i % 50 === 49) {
    const alert_id = `${NODE}/cpu_percent/${timestampMs}`;
    await store.recordAlert({ alert_id, severity: 'WARNING', metric: 'cpu_percent', value: 1, threshold: 1, timestamp, resolved: false });
    say(`alert ${alert_id}\n`);
  }
  if (i % 5 === 0) await sleep(1);
}
