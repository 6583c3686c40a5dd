import t from 'tap';
import { markupOf, NOW_MS, statusOf, textOf } from '../../testing/markup.ts';
import { initialConnection } from '../connection.ts';
import type { Alert } from '../types.ts';

const alert = (node: string, metric: string, more: Partial<Alert> = {}): Alert => ({
  alert_id: `${node}/${metric}/01J`,
  severity: 'WARNING',
  metric,
  value: 84.2,
  threshold: 80,
  timestamp: new Date(NOW_MS - 60_000).toISOString(),
  resolved: false,
  ...more,
});
const robots = (count: number) => [statusOf('pi'), ...Array.from({ length: count - 1 }, (_, i) => statusOf(`robot-${i + 1}`))];
const gone = { ...initialConnection(0), phase: 'waiting' as const, failures: 2 };

t.test('one machine is shown as a node, several as a wall', async (t) => {
  t.match(markupOf({}), /aria-current="page"[^>]*>(?:(?!<\/a>).)*Node/);
  t.match(markupOf({ nodes: robots(2) }), /aria-current="page"[^>]*>(?:(?!<\/a>).)*All nodes/);
  t.match(textOf(markupOf({ address: '#/nothing' })), 'There is no such page.');
});

t.test('the wall shows each node with status, values and age, the worst first', async (t) => {
  for (const count of [1, 12, 30, 300]) {
    const markup = markupOf({ address: '#/wall', nodes: robots(count) });
    t.equal(markup.match(/class="tile ok/g)?.length, count, `${count} nodes`);
    t.equal(markup.match(/<svg/g)?.length ?? 0, count + 1 + 4, 'a shape each, one in the header, four in the navigation');
  }
  const nodes = [
    statusOf('pi'),
    statusOf('robot-2', { status: 'CRITICAL', cpu_percent: 97.6 }),
    statusOf('robot-3', { status: 'WARNING' }),
  ];
  const text = textOf(markupOf({ address: '#/wall', nodes }));
  t.match(
    text,
    /3 nodes: 1 CRITICAL, 1 WARNING, 1 OK.*robot-2 CRITICAL CPU 98 % Mem 40 % Disk 30 % Temp 50 °C live.*robot-3 WARNING.*pi OK/,
  );
  t.match(markupOf({ address: '#/wall', nodes }), 'class="mark critical"', 'the header shows the worst');
});

t.test('an open alert colours a node whose own status is still OK', async (t) => {
  const markup = markupOf({ address: '#/wall', nodes: robots(2), alerts: [alert('robot-1', 'temperature')] });
  t.match(textOf(markup), /robot-1 WARNING/);
  t.match(markup, /class="badge"[^>]*>1</);
});

t.test('nothing is shown as current once the service does not answer', async (t) => {
  for (const address of ['#/wall', '#/nodes', '#/alerts', '#/system']) {
    const nodes = robots(3);
    const markup = markupOf({ address, nodes, state: { connection: gone } });
    t.match(textOf(markup), /No data since \d\d:\d\d:\d\d/, address);
    t.notMatch(markup, /class="(tile|hero|mark) ok/, address);
  }
});

t.test('a node: its status, what to do, its values and charts', async (t) => {
  const nodes = [statusOf('pi'), statusOf('robot-3', { status: 'WARNING', temperature: 81.2, memory_percent: null })];
  const markup = markupOf({ address: '#/nodes/robot-3', nodes, alerts: [alert('robot-3', 'temperature', { value: 81.2 })] });
  const text = textOf(markup);
  t.match(text, /robot-3 seen from classroom-pi/);
  t.match(text, /Temperature is high\. Finish what you are doing/);
  t.match(text, /81\.2 °C/);
  t.match(text, /Memory usage No reading unavailable/);
  t.equal(markup.match(/role="img"/g)?.length, 4);
  t.match(textOf(markupOf({ address: '#/nodes/nobody', nodes })), 'No node is named nobody.');
});

t.test('while the page loads it shows so, and a refused token asks for one', async (t) => {
  const connecting = initialConnection(0);
  for (const address of ['', '#/wall', '#/nodes', '#/alerts', '#/system']) {
    t.match(textOf(markupOf({ address, nodes: [], status: null, state: { connection: connecting } })), /Connecting…/, address);
  }
  t.match(textOf(markupOf({ state: { connection: { ...connecting, phase: 'locked' } } })), /Access token needed/);
});

t.test('names of nodes are text, whatever they contain', async (t) => {
  const name = '<img src=x onerror=alert(1)>';
  for (const address of ['#/wall', `#/nodes/${encodeURIComponent(name)}`, '#/alerts']) {
    const markup = markupOf({ address, nodes: [statusOf('pi'), statusOf(name)], alerts: [alert(name, 'cpu_percent')] });
    t.notMatch(markup, '<img');
    t.match(textOf(markup), name, address);
  }
});

t.test('the language of the browser is used, with its numbers', async (t) => {
  const nodes = [statusOf('pi'), statusOf('robot-3', { status: 'CRITICAL', cpu_percent: 97.6 })];
  t.match(textOf(markupOf({ address: '#/wall', nodes, languages: ['de-AT', 'en'] })), /2 Knoten: 1 KRITISCH, 1 OK/);
  t.match(textOf(markupOf({ address: '#/nodes/robot-3', nodes, languages: ['de'] })), /97,6 %/);
  t.match(textOf(markupOf({ address: '#/wall', nodes, languages: ['xx'] })), /2 nodes/, 'English otherwise');
});
