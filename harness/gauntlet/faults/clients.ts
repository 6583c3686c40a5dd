import type { StatusDocument } from '../../../src/http/api/schema.ts';

import { type Arena, pause } from '../arena.ts';
import type { Fault } from '../fault.ts';
import { attacker, flood, Meter, PRECEDENCE, told } from './flood-meter.ts';

const GROUP = 'clients';
const CLIENTS = 1000;
/** Events are twice as large with it, so that what a reader does not take soon is much. */
const LONG_NAME = `health_monitor_${'x'.repeat(110)}`;
const EXPECTED = 'memory stays below 200 MB, sampling goes on, who reads gets everything, and when they are gone all is as before';

interface Sent {
  readonly opened: number;
  readonly closed: number;
  readonly answers: Readonly<Record<string, number>>;
}

/** A thousand that ask for /events and read nothing, until `until` holds or for so many seconds. */
async function deafClients(
  arena: Arena,
  seconds: number,
  until: (status: StatusDocument) => boolean,
): Promise<{ sent: Sent; rest: StatusDocument['rest']; most: number; told: string; backSeconds: number }> {
  const host = attacker(arena);
  // What the clients' kernel takes for them is small: it is the service that has to hold the rest.
  host.exec('sh', '-c', 'echo 4096 4096 4096 > /proc/sys/net/ipv4/tcp_rmem');
  const meter = await Meter.start(arena);
  const clients = await flood(arena, host, 'streams', 600);
  let most = 0;
  let status = await arena.appliance.status();
  const endMs = Date.now() + seconds * 1000;
  while (Date.now() < endMs && !until(status)) {
    await pause(0.5);
    status = await arena.appliance.status();
    most = Math.max(most, status.rest.event_streams);
  }
  const sent = await clients.end<Sent>(true);
  const metered = await meter.end(0.9);
  return { sent, rest: status.rest, most, told: told(metered), backSeconds: metered.backSeconds };
}

export const clientsBeyondLimit: Fault = {
  name: 'clients-beyond-limit',
  group: GROUP,
  core: false,
  expected: `1,000 event-stream clients that never read, where 64 are allowed: the others are refused cleanly; ${EXPECTED}`,
  boot: { lan: 'good', files: PRECEDENCE },
  async run(arena) {
    const { sent, most, told: text, backSeconds } = await deafClients(arena, 20, () => false);
    const { '200': served = 0, '503': refused = 0, ...others } = sent.answers;
    arena.must('no more than 64 are served at a time', most <= 64 && served >= 60, { most, served });
    arena.must('the others are refused with 503 or closed', refused > 0 && Object.keys(others).length === 0, sent);
    return arena.finish({
      observed: `${sent.opened} connected: ${served} served, ${refused} refused with 503, ${sent.closed} closed; ${text}`,
      recoverySeconds: backSeconds,
    });
  },
};

export const clientsAllowed: Fault = {
  name: 'clients-that-never-read',
  group: GROUP,
  core: false,
  expected: `1,000 event-stream clients that never read, where 1,000 are allowed: each is dropped once too much waits for it; ${EXPECTED}`,
  boot: {
    lan: 'good',
    files: PRECEDENCE,
    topic: false,
    config: { publish_frequency: 4, node_name: LONG_NAME, rest: { max_event_streams: 1000, max_connections: 1200 } },
  },
  async run(arena) {
    const {
      sent,
      rest,
      most,
      told: text,
      backSeconds,
    } = await deafClients(arena, 240, (status) => status.rest.dropped_event_streams >= CLIENTS - 50);
    arena.must('all are served at first', most > CLIENTS - 100, most);
    arena.must('and nearly all dropped', rest.dropped_event_streams >= CLIENTS - 100, rest);
    return arena.finish({
      observed: `${most} served at a time, ${rest.dropped_event_streams} dropped, ${sent.closed} closed; ${text}`,
      recoverySeconds: backSeconds,
    });
  },
};
