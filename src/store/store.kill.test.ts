import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { runs } from '../../testkit/effort.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import { HOUR_MS } from '../core/time/time.ts';
import { ALL } from './testing/alerts.ts';
import { EVER, NODE, startStore, TestStore } from './testing/store.ts';

/** Number of recorder lines before the kill: at the start, and in the second, third and later minutes of its simulated time. */
const KILLED_AFTER = [1, 300, 700, 1200, ...Array.from({ length: runs(0, 20) }, (_, round) => 1 + ((round * 397) % 1500))];
const ROUNDS = KILLED_AFTER.length;
const program = fileURLToPath(new URL('./testing/recorder.ts', import.meta.url));

interface Recorder {
  /** Waits for a total number of lines, of samples and alerts, kills the recorder and returns all its lines. */
  kill(afterLines: number): Promise<string[]>;
}

/** Starts the recorder; resolves once it records. */
async function startRecorder(folder: string, firstMs: number): Promise<Recorder> {
  const parameters = [program, join(folder, 'data'), join(folder, 'run'), String(firstMs)];
  const child = spawn(process.execPath, parameters, { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(child, 'close');
  let text = '';
  const hasLines = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (text.split('\n').length > count) resolve();
      };
      child.stdout.on('data', look);
      child.once('close', () => resolve());
      look();
    });
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await hasLines(1);
  return {
    kill: async (afterLines) => {
      await hasLines(afterLines);
      child.kill('SIGKILL');
      const [, signal] = await closed;
      if (signal !== 'SIGKILL') throw new Error(`the recorder ended by itself: ${text.slice(-500)}`);
      return text.split('\n').slice(0, -1); // The last line may be torn.
    },
  };
}

const named = (lines: readonly string[], kind: string): string[] =>
  lines.filter((line) => line.startsWith(`${kind} `)).map((line) => line.slice(kind.length + 1));

t.test('SIGKILL at any moment neither loses nor duplicates a record', async (t) => {
  const folder = temporaryFolder(t);
  const firstMs = Date.now() - 2 * ROUNDS * HOUR_MS;
  const lines: string[] = [];
  for (const [round, afterLines] of KILLED_AFTER.entries()) {
    const recorder = await startRecorder(folder, firstMs + round * 2 * HOUR_MS);
    lines.push(...(await recorder.kill(afterLines)));
  }
  const samples = named(lines, 'sample').map(Number);
  const alerts = named(lines, 'alert');
  t.ok(samples.length > 2000 && alerts.length > 30, `${samples.length} samples and ${alerts.length} alerts in ${ROUNDS} rounds`);
  t.same(
    lines.filter((line) => line.startsWith('log error')),
    [],
  );

  const { store } = await startStore(t, folder);
  const page = await store.history({ node: NODE, ...EVER, stepMs: null, order: 'asc', limit: 200_000 });
  const found = Array.from(page.timestampMs.subarray(0, page.count));
  const times = new Set(found);
  t.equal(times.size, found.length, 'no sample twice');
  t.same(
    samples.filter((ms) => !times.has(ms)),
    [],
    'every sample is stored',
  );
  // One record may have been made without its line being printed.
  t.ok(found.length - samples.length <= ROUNDS, `${found.length} of ${samples.length}`);
  const listed = (await store.alerts({ ...ALL, range: EVER, limit: 10_000 })).alerts.map(({ alert_id }) => alert_id);
  t.equal(new Set(listed).size, listed.length, 'no alert twice');
  t.same(
    alerts.filter((id) => !listed.includes(id)),
    [],
    'every alert is stored',
  );
  t.ok(listed.length - alerts.length <= ROUNDS);
  const [whole] = await store.aggregate({ node: NODE, ...EVER, by: null });
  t.equal(whole?.samples_received, found.length, 'the hours count the same samples');
});

t.test('a folder in use by another process is refused, and free as soon as that process has ended', async (t) => {
  const folder = temporaryFolder(t);
  const recorder = await startRecorder(folder, Date.now() - HOUR_MS);
  const refused = new TestStore(folder);
  await t.rejects(refused.store.start(), { name: 'DataFolderInUse' });
  const samples = named(await recorder.kill(300), 'sample').map(Number);
  const found = await (await startStore(t, folder)).rows();
  const times = found.map(({ timestampMs }) => timestampMs);
  t.equal(new Set(times).size, times.length);
  t.same(
    samples.filter((ms) => !times.includes(ms)),
    [],
    'the attempt does not affect the other process',
  );
});
