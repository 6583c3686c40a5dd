import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { mainPid } from '../../../bench/support/appliance.ts';
import { DEBUGGER, dropIn } from '../../../testkit/container/appliance.ts';
import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import { mustBeRestarted, mustGoOn, mustPublishOn, mustPublishOnTopic, runOf } from './tools.ts';

const GROUP = 'descriptors';
const USUAL_LIMIT = 16_384;

/** That statuses came by stream and topic all the time, and the alerts of the tide. */
async function mustHaveGoneOn(arena: Arena, fromMs: number): Promise<void> {
  mustPublishOn(arena, fromMs);
  mustPublishOnTopic(arena, fromMs);
  const turns = (arena.tide?.turns ?? []).filter(({ atMs }) => atMs >= fromMs && atMs < Date.now() - 1000).length;
  const told = arena.stream.alerts.filter(({ atMs, it }) => atMs >= fromMs && it.metric === 'disk_percent').length;
  arena.must('and alerts', told >= turns, `${told} of ${turns}`);
}

async function limitDescriptors(arena: Arena, limit: number): Promise<void> {
  execFileSync('prlimit', [`--nofile=${limit}:`, '--pid', String(await mainPid(arena.machine))]);
}

/** A new descriptor is always the lowest free number, which must be below the limit: from here on there is none. */
async function forbidDescriptors(arena: Arena): Promise<void> {
  const taken = new Set(readdirSync(`/proc/${await mainPid(arena.machine)}/fd`).map(Number));
  let lowest = 0;
  while (taken.has(lowest)) lowest += 1;
  await limitDescriptors(arena, lowest);
}

export const noDescriptors: Fault = {
  name: 'no-descriptors',
  group: GROUP,
  core: true,
  expected: 'no file nor connection can be opened any more: measuring, publishing and alerting go on; lifted, everything is as before',
  async run(arena) {
    const before = await runOf(arena);
    await arena.machine.http('/status');
    arena.afterwards(() => limitDescriptors(arena, USUAL_LIMIT));
    await forbidDescriptors(arena);
    const beganMs = Date.now();
    await pause(12);
    await mustGoOn(arena, before);
    await mustHaveGoneOn(arena, beganMs);
    const liftedMs = await arena.strike(() => limitDescriptors(arena, USUAL_LIMIT));
    const recoverySeconds = await arena.recovered(liftedMs, 10);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'went on with what it had open; lifted, REST answered again', recoverySeconds });
  },
};

export const noDescriptorsMinutes: Fault = {
  name: 'no-descriptors-minutes',
  group: GROUP,
  core: false,
  expected: 'for more than a minute, then killed: nothing that was published is lost',
  async run(arena) {
    const before = await runOf(arena);
    arena.afterwards(() => limitDescriptors(arena, USUAL_LIMIT));
    await forbidDescriptors(arena);
    const beganMs = Date.now();
    await pause(75);
    await mustGoOn(arena, before);
    await mustHaveGoneOn(arena, beganMs);
    const struckMs = await arena.strike(() => arena.appliance.signal('KILL'));
    const recoverySeconds = await arena.recovered(struckMs, 10);
    await mustBeRestarted(arena, before);
    return arena.finish({ observed: 'went on with what it had open; killed, it came back with everything', recoverySeconds });
  },
};

const HOARD_SECONDS = 15;

export const descriptorsOpened: Fault = {
  name: 'descriptors-used-up',
  group: GROUP,
  core: false,
  boot: { files: { [dropIn('debugger')]: DEBUGGER } },
  expected: 'files opened in it until the kernel refuses: measuring, publishing and alerting go on; closed, everything is as before',
  async run(arena) {
    const before = await runOf(arena);
    await arena.appliance.inject(`(() => {
      const fs = process.getBuiltinModule('node:fs');
      const hoard = [];
      const timer = setInterval(() => { try { for (;;) hoard.push(fs.openSync('/dev/null')); } catch {} }, 50);
      setTimeout(() => { clearInterval(timer); for (const descriptor of hoard) fs.closeSync(descriptor); }, ${HOARD_SECONDS * 1000});
    })()`);
    const beganMs = Date.now();
    await pause(HOARD_SECONDS - 2);
    await mustHaveGoneOn(arena, beganMs + 1000);
    await pause(2);
    const recoverySeconds = await arena.recovered(beganMs + HOARD_SECONDS * 1000, 10);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'went on with what it had open; closed, REST answered again', recoverySeconds });
  },
};

const LIMIT = 64;
const CLIENTS = 300;

export const clientsTakeDescriptors: Fault = {
  name: 'descriptors-of-clients',
  group: GROUP,
  core: false,
  boot: { files: { [dropIn('few-descriptors')]: `[Service]\nLimitNOFILE=${LIMIT}\n` } },
  expected: `LimitNOFILE=${LIMIT} and ${CLIENTS} clients that keep their connections: measuring, publishing and alerting go on; gone, REST answers`,
  async run(arena) {
    const before = await runOf(arena);
    const port = Number(new URL(await arena.machine.url()).port);
    const clients: Socket[] = [];
    arena.afterwards(() => {
      for (const client of clients) client.destroy();
    });
    const beganMs = Date.now();
    for (let n = 0; n < CLIENTS; n += 1) {
      const client = connect(port, '127.0.0.1');
      client.on('error', () => undefined).write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
      client.resume();
      clients.push(client);
    }
    await pause(12);
    await mustGoOn(arena, before);
    await mustHaveGoneOn(arena, beganMs);
    const goneMs = await arena.strike(() => {
      for (const client of clients) client.destroy();
    });
    const recoverySeconds = await arena.recovered(goneMs, 10);
    await mustGoOn(arena, before);
    return arena.finish({ observed: 'went on with what it had open; when they had gone REST answered at once', recoverySeconds });
  },
};
