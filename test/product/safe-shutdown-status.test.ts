import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import type { ShutdownProgress } from '../../src/core/shutdown/shutdown.ts';
import { type StatusDocument, shutdownEventSchema, statusDocumentSchema } from '../../src/http/api/schema.ts';
import { RestServer } from '../../src/http/server.ts';
import type { ServiceView } from '../../src/http/view.ts';
import { EventReader } from '../../testkit/service/events.ts';
import { NO_SHUTDOWN, statusOf } from '../../testkit/service/remote-nodes.ts';
import { Scene } from '../../testkit/service/safe-shutdown.ts';
import { ROOT } from '../../testkit/service/service.ts';
import { statusDocument } from '../../testkit/service/status-document.ts';

// Tests how a safe shutdown is reported: /events, /status and the command line.

const shutdownSchema = statusDocumentSchema.entries.shutdown;

t.test('/status and every event conform to the API description at every moment', async (t) => {
  const scene = await Scene.start(t, { settings: { stop_units: ['broken.service'] } });
  scene.hook('20-fails', 'exit 1');
  const seen = new Set<string>();
  const check = async (): Promise<void> => {
    const status = await scene.shutdown.status();
    v.parse(shutdownSchema, status);
    seen.add(`${status.state} ${status.seconds_left === null ? '' : 'left'}`);
  };
  await check();
  await scene.call({ reason: 'x'.repeat(500), timeout: Number.NEGATIVE_INFINITY });
  await check();
  for (const reason of ['EMERGENCY', 'MANUAL']) {
    scene.heldHook('10-well');
    await scene.call({ reason });
    await check();
    scene.release();
    await scene.ended();
    await check();
  }
  v.parse(shutdownSchema, NO_SHUTDOWN);
  t.same([...seen], ['none ', 'in_progress left', 'completed ', 'aborted ']);
  for (const progress of scene.progress) v.parse(shutdownEventSchema, progress);
  t.ok(scene.progress.length > 10, `${scene.progress.length} events`);
});

function progress(n: number): ShutdownProgress {
  return {
    request_id: `01J${n}`,
    state: 'in_progress',
    step: 'hooks',
    reason: 'MANUAL',
    requested_by: 'Zoë\u2028"x"',
    action: 'dry-run',
    seconds_left: 12.345,
    message: `number ${n}`,
    timestamp: '2026-03-04T05:06:07.089Z',
  };
}

async function rest(t: Test): Promise<{ server: RestServer; url: string }> {
  const scene = await Scene.start(t);
  const view: ServiceView = {
    localNode: 'health_monitor',
    nodes: () => ['health_monitor', 'robot'],
    isKnownNode: (node) => node === 'health_monitor' || node === 'robot',
    current: () => null,
    openAlerts: () => [],
    thresholds: () => {
      throw new Error('not asked for here');
    },
    status: () => Promise.reject(new Error('not asked for here')),
    reports: () => Promise.reject(new Error('not asked for here')),
    report: () => Promise.reject(new Error('not asked for here')),
    history: scene.store.store,
  };
  const server = new RestServer({
    host: '127.0.0.1',
    port: 0,
    token: null,
    allowedOrigins: [],
    allowedHosts: [],
    machineNames: { names: () => [], readAgain: async () => undefined },
    findUsers: async () => [],
    boundSockets: () => false,
    peerUser: () => null,
    maxConnections: 64,
    maxEventStreams: 8,
    dashboardFolder: `${ROOT}/docs`,
    openapiFile: `${ROOT}/docs/openapi.json`,
    view,
    log: () => undefined,
  });
  const { port } = (await server.start()) as AddressInfo;
  t.teardown(() => server.stop());
  return { server, url: `http://127.0.0.1:${port}` };
}

t.test('events are sent to every reader that requested them, whichever node it follows, and are resumed', async (t) => {
  const { server, url } = await rest(t);
  const readers = {
    all: await EventReader.open(url),
    shutdown: await EventReader.open(url, '/events?events=shutdown'),
    other: await EventReader.open(url, '/events?node=robot'),
    health: await EventReader.open(url, '/events?events=health,alert'),
  };
  t.teardown(() => {
    for (const reader of Object.values(readers)) reader.close();
  });
  const received = (reader: EventReader): unknown[] =>
    reader.received.filter(({ event }) => event === 'shutdown').map(({ data }) => JSON.parse(data));
  for (const n of [1, 2, 3]) server.events.publishShutdown(progress(n));
  const status = statusOf('health_monitor', Date.UTC(2026, 2, 4));
  server.events.publishHealth(status, JSON.stringify(status), null);
  for (const reader of [readers.all, readers.shutdown, readers.other]) {
    await reader.untilCount(3);
    t.same(received(reader), [1, 2, 3].map(progress));
  }
  t.match(await readers.health.untilCount(1), [{ event: 'health' }], 'no other is sent any');
  const resumed = await EventReader.open(url, '/events?events=shutdown', { 'Last-Event-ID': readers.all.received[0]?.id ?? '' });
  t.teardown(() => resumed.close());
  await resumed.untilCount(2);
  t.same(received(resumed), [2, 3].map(progress), 'after the last one that was received');
});

/** The output of `edge-health status` for a service with this state. */
async function printed(t: Test, shutdown: StatusDocument['shutdown']): Promise<string> {
  const ros = { ...statusDocument().ros, observing: false, observers: ['robot2', 'robot3'] };
  const server = createServer((request, response) => {
    const answers: Record<string, unknown> = {
      '/status': { ...statusDocument({ shutdown }), ros },
      '/health': statusOf('robot', Date.now()),
    };
    response.end(JSON.stringify(answers[request.url ?? ''] ?? { data: [], count: 0 }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { stdout } = await promisify(execFile)(`${ROOT}/bin/edge-health`, ['status', '--url', url]);
  return stdout;
}

t.test('the command line shows a shutdown in progress, how the last one ended, and what prevents one', async (t) => {
  const idle = { ...NO_SHUTDOWN, enabled: true };
  const known = { ...idle, reason: 'MANUAL', requested_by: 'Zoë', message: 'running: 10-park', started: '2026-03-04T05:06:07.089Z' };
  t.match(await printed(t, idle), /Shutdown +none; a request would perform: dry-run/);
  t.notMatch(await printed(t, NO_SHUTDOWN), /Shutdown/);
  t.match(await printed(t, idle), /ROS 2 .*\n +other nodes are observed by robot2, robot3\n +Shutdown/);
  t.match(
    await printed(t, { ...known, state: 'in_progress', seconds_left: 11.2 }),
    /Shutdown +IN PROGRESS, 12 s left: MANUAL, requested by Zoë: running: 10-park/,
  );
  const ended = await printed(t, {
    ...known,
    state: 'aborted',
    ended: '2026-03-04T05:07:00.000Z',
    problem: 'safe_shutdown.action is poweroff, which …',
  });
  t.match(ended, /the last one \(MANUAL, requested by Zoë\), 2026-03-04T05:07:00\.000Z: running: 10-park/);
  t.match(ended, /not possible: safe_shutdown\.action is poweroff/);
});
