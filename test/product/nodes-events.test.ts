import t from 'tap';
import { HOUR_MS } from '../../src/core/time/time.ts';
import { temporaryFolder } from '../../testkit/folder.ts';
import type { ReceivedEvent } from '../../testkit/service/events.ts';
import { alertOf, type InProcessService, startInProcess, statusOf, TestClocks } from '../../testkit/service/remote-nodes.ts';

const contents = (events: readonly ReceivedEvent[]): string[] => events.map(({ event, data }) => `${event} ${data}`);

/** Clocks that are correct, behind and ahead, and one that is set in between. */
const OFFSETS_MS = { arm: 0, leg: -5 * HOUR_MS, '/fleet/cart': 3 * HOUR_MS };

/** All nodes publish statuses, and sometimes an alert; returns the number of events. */
async function converse(service: InProcessService, seconds: number): Promise<number> {
  let count = 0;
  for (let second = 0; second < seconds; second += 1) {
    service.measure({ cpu_percent: second });
    count += 1;
    for (const [node, offsetMs] of Object.entries(OFFSETS_MS)) {
      const isSet = node === 'leg' && service.clocks.seconds % 100 > 50;
      service.remoteNodes.onHealthStatus(
        statusOf(node, service.clocks.wallMs + offsetMs + (isSet ? HOUR_MS / 3 : 0), { cpu_percent: second }),
      );
      count += 1;
    }
    if (second % 9 === 4) {
      service.remoteNodes.onAlert(
        alertOf('arm', String(service.clocks.wallMs), service.clocks.wallMs, {
          metric: 'battery',
          alert_id: `arm/battery/${service.clocks.wallMs}`,
        }),
      );
      await service.settled();
      count += 1;
    }
    await service.run(1);
  }
  return count;
}

t.test('a client resumes exactly after any event, with nodes of differing clocks, from memory and after restarts', async (t) => {
  const folder = temporaryFolder(t);
  const clocks = new TestClocks();
  const first = await startInProcess(t, folder, clocks);
  const witness = await first.events();
  // Long enough for the robots to be established: statuses of newcomers are not kept over a restart.
  const count = await converse(first, 80);
  const said = [...(await witness.untilCount(count))];
  t.equal(new Set(said.map(({ id }) => id)).size, count, 'no id comes twice');
  t.ok(
    said.every(({ id }) => id.length < 50),
    `ids are short: ${said.at(-1)?.id}`,
  );
  const places = [0, 1, 30, 100, 101, 102, 103, count - 2, count - 1];
  const check = async (service: InProcessService, more: readonly string[], what: string): Promise<void> => {
    for (const at of places) {
      const wanted = [...contents(said.slice(at + 1)), ...more];
      const reader = await service.events('/events', said[at]?.id);
      t.same(contents(await reader.untilCount(wanted.length)), wanted, `${what}, after event ${at}`);
      reader.close();
    }
  };
  await check(first, [], 'from memory');
  await first.stop();

  clocks.pass(60);
  const second = await startInProcess(t, folder, clocks);
  await check(second, [], 'after a restart');
  const live = await second.events('/events', said[places[3] as number]?.id);
  const laterWitness = await second.events();
  const laterCount = await converse(second, 30);
  const later = contents(await laterWitness.untilCount(laterCount));
  t.same(
    contents(await live.untilCount(count - 101 + laterCount)),
    [...contents(said.slice(101)), ...later],
    'and on into what happens now',
  );
  await check(second, later, 'with what came since');

  const cart = await second.events('/events?node=/fleet/cart&events=health', said[40]?.id);
  const wanted = [...contents(said.slice(41)), ...later].filter((text) => text.startsWith('health') && text.includes('"/fleet/cart"'));
  t.same(contents(await cart.untilCount(wanted.length)), wanted, 'one node alone');
  const replayed = cart.received[10]?.id as string;
  const fromReplayed = await second.events('/events?node=/fleet/cart&events=health', replayed);
  t.same(contents(await fromReplayed.untilCount(wanted.length - 11)), wanted.slice(11), 'the ids of what was replayed resume as well');
});

t.test('statuses that are shown but not stored are sent live, without an effect on other events', async (t) => {
  const service = await startInProcess(t, temporaryFolder(t));
  // A clock that jumps by five hours each time, of which five are stored.
  const jump = (second: number): void =>
    service.remoteNodes.onHealthStatus(statusOf('lost', service.clocks.wallMs - (5 + 5 * (second % 2)) * HOUR_MS, { cpu_percent: second }));
  await service.run(6, jump);
  const reader = await service.events();
  const say = (second: number): void => {
    service.measure({ cpu_percent: second });
    jump(second);
  };
  await service.run(10, say);
  const said = [...(await reader.untilCount(20))];
  t.equal(new Set(said.map(({ id }) => id)).size, 20);
  const resumed = await service.events('/events', said[5]?.id);
  t.same(contents(await resumed.untilCount(14)), contents(said.slice(6)), 'from memory all of it');
  // More than memory holds: the rest comes from the store.
  await service.run(3000, (second) => service.measure({ cpu_percent: second }));
  const late = await service.events('/events?events=health', said[5]?.id);
  const events = await late.untilCount(3007);
  t.equal(events.filter(({ data }) => data.includes('"lost"')).length, 0);
  t.same(contents(events).slice(0, 7), contents(said.slice(6).filter(({ data }) => !data.includes('"lost"'))));
  for (const second of [0, 1]) jump(second);
  await late.untilCount(3008);
  t.match(late.received.at(-1)?.data, '"lost"', 'a reader that was brought up to date from the store gets it as well');
});
