import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { SimulatedMachine } from './testing/simulated.ts';

const START_MS = Date.UTC(2026, 2, 1);
const YEAR_SECONDS = 365 * 86_400;
const TWO_DAYS_SECONDS = 2 * 86_400;

const event = fc.oneof(
  fc.record({ kind: fc.constant('sleep'), seconds: fc.nat(TWO_DAYS_SECONDS) }),
  fc.record({ kind: fc.constant('step'), seconds: fc.integer({ min: -TWO_DAYS_SECONDS, max: TWO_DAYS_SECONDS }) }),
  fc.record({ kind: fc.constant('set'), seconds: fc.nat(YEAR_SECONDS) }),
  fc.record({ kind: fc.constant('lose'), seconds: fc.nat(100) }),
  fc.record({ kind: fc.constant('kill'), seconds: fc.constant(0) }),
  fc.record({ kind: fc.constant('reboot'), seconds: fc.nat(TWO_DAYS_SECONDS) }),
);
const zone = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC');

async function apply(machine: SimulatedMachine, kind: string, seconds: number): Promise<void> {
  const { clocks } = machine;
  if (kind === 'sleep') clocks.sleep(seconds);
  else if (kind === 'step') clocks.wallMs = Math.max(0, clocks.wallMs + seconds * 1000);
  else if (kind === 'set') clocks.wallMs = START_MS + seconds * 1000;
  else if (kind === 'lose') clocks.wallMs = seconds * 1000;
  else if (kind === 'kill') machine.start('kill');
  else {
    await machine.scheduler.stop();
    clocks.wallMs += seconds * 1000;
    machine.start('reboot');
  }
}

t.test('whatever happened to the clock and the machine, jobs neither pause nor run too often', async (t) => {
  const property = fc.asyncProperty(zone, fc.nat(YEAR_SECONDS), fc.array(event, { maxLength: 5 }), async (timezone, seconds, events) => {
    const start = new Date(START_MS + seconds * 1000).toISOString();
    const machine = new SimulatedMachine(t, start, { timezone, backup_logs: '30 2 * * *' });
    machine.start();
    for (const { kind, seconds } of events) {
      await apply(machine, kind, seconds);
      await machine.run(20);
      machine.took();
      await machine.run(300);
      const minutes = machine.took('collect_metrics').length;
      const backups = machine.took('backup_logs').length;
      if (minutes < 4 || minutes > 6 || backups > 1)
        throw new Error(`${kind} ${seconds}: ${minutes} rows and ${backups} backups in 5 minutes`);
    }
    await machine.scheduler.stop();
  });
  await fc.assert(property, { numRuns: runs(10, 200), seed: SEED });
  t.pass();
});
