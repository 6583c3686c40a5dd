import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { ShutdownProgress } from '../core/shutdown.ts';
import type { TransportChoice } from '../ros/choose.ts';
import type { RosTransport } from '../ros/graph.ts';
import { RosGraph } from './ros-graph.ts';

const PROGRESS: ShutdownProgress = {
  request_id: '01J',
  state: 'in_progress',
  step: 'hooks',
  reason: 'MANUAL',
  requested_by: 'me',
  action: 'dry-run',
  seconds_left: 5,
  message: '',
  timestamp: '2026-01-02T03:04:05.000Z',
};

function setUp(choice: Partial<TransportChoice>) {
  const sent: string[] = [];
  const transport: RosTransport = {
    start: async () => undefined,
    stop: async () => void sent.push('stop'),
    details: () => ({ peers: 0, subscribers: 0, refused: 0, problem: null }),
    publishHealth: () => undefined,
    publishAlert: () => undefined,
    publishShutdown: ({ message }) => void sent.push(message),
  };
  const graph = new RosGraph({
    domainId: 0,
    choose: async () => ({ transport: 'embedded', reason: 'asked for', fallback: false, prepared: null, ...choice }),
    create: async () => transport,
    embeddedInstead: false,
    log: () => undefined,
  });
  return { graph, sent };
}

async function started(graph: RosGraph): Promise<void> {
  graph.start();
  for (let i = 0; i < 10; i += 1) await setImmediate();
}

/** As the steps of a procedure follow each other: ten at once. */
function publishTen(t: Test, graph: RosGraph): string[] {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.teardown(() => mock.timers.reset());
  const messages = Array.from({ length: 10 }, (_, i) => `${i}`);
  for (const message of messages) graph.publishShutdown({ ...PROGRESS, message });
  return messages;
}

t.test('the steps of a shutdown go out one at a time, in order: ros2 topic echo keeps five', async (t) => {
  const { graph, sent } = setUp({});
  await started(graph);
  const messages = publishTen(t, graph);
  t.same(sent, ['0'], 'the first at once');
  for (let i = 1; i < messages.length; i += 1) {
    mock.timers.tick(1000);
    t.ok(sent.length > i, 'another one each time');
  }
  t.same(sent, messages);
});

t.test('what is still waiting goes out before the end', async (t) => {
  const { graph, sent } = setUp({});
  await started(graph);
  const messages = publishTen(t, graph);
  await graph.stop();
  t.same(sent, [...messages, 'stop']);
  mock.timers.tick(1000);
  t.same(sent.length, messages.length + 1);
});

t.test('a shutdown that began before the graph was joined is published from its first step', async (t) => {
  const { graph, sent } = setUp({});
  const messages = Array.from({ length: 60 }, (_, i) => `${i}`);
  for (const message of messages) graph.publishShutdown({ ...PROGRESS, message });
  await started(graph);
  await graph.stop();
  t.same(sent, [...messages, 'stop']);
});
