import t from 'tap';
import { markupOf, NOW_MS, reportsMarkup, statusOf, textOf } from '../../testing/markup.ts';
import { initialConnection } from '../model/connection.ts';
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

t.test('a tile shows why its node is not OK, and since when', async (t) => {
  const nodes = [statusOf('pi'), statusOf('robot-3', { status: 'CRITICAL' }), statusOf('robot-4', { status: 'WARNING' })];
  const alerts = [
    alert('robot-3', 'temperature'),
    alert('robot-3', 'cpu_percent', { severity: 'CRITICAL', threshold: 90, value: 97 }),
    alert('robot-4', 'temperature', { value: 81 }),
  ];
  const text = textOf(markupOf({ address: '#/wall', nodes, alerts }));
  t.match(text, /robot-3 CRITICAL CPU usage \+1 since \d\d:02 CPU/);
  t.match(text, /robot-4 WARNING Temperature since \d\d:02 CPU/);
  t.match(text, /pi OK CPU/);
  t.notMatch(
    textOf(markupOf({ address: '#/wall', nodes, alerts, state: { connection: gone } })),
    'CPU usage',
    'not while nothing is current',
  );
});

t.test('nothing is shown as current while the service does not respond', async (t) => {
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

t.test('the page shows that it is connecting, and that an access token is needed', async (t) => {
  const connecting = initialConnection(0);
  for (const address of ['', '#/wall', '#/nodes', '#/alerts', '#/system']) {
    t.match(textOf(markupOf({ address, nodes: [], status: null, state: { connection: connecting } })), /Connecting…/, address);
  }
  t.match(textOf(markupOf({ state: { connection: { ...connecting, phase: 'locked' } } })), /Access token needed/);
});

t.test('node names are rendered as text, whatever they contain', async (t) => {
  const name = '<img src=x onerror=alert(1)>';
  for (const address of ['#/wall', `#/nodes/${encodeURIComponent(name)}`, '#/alerts']) {
    const markup = markupOf({ address, nodes: [statusOf('pi'), statusOf(name)], alerts: [alert(name, 'cpu_percent')] });
    t.notMatch(markup, '<img');
    t.match(textOf(markup), name, address);
  }
});

t.test('a name that can be mistaken for another one is shown with its spelling', async (t) => {
  const name = 'm\u043en';
  for (const address of ['#/wall', `#/nodes/${encodeURIComponent(name)}`, '#/alerts']) {
    const text = textOf(markupOf({ address, nodes: [statusOf('mon'), statusOf(name)], alerts: [alert(name, 'cpu_percent')] }));
    t.match(text, `${name} (m\\u{43e}n)`, address);
    t.notMatch(text, 'mon (');
  }
});

t.test('the page uses the language and number format of the browser', async (t) => {
  const nodes = [statusOf('pi'), statusOf('robot-3', { status: 'CRITICAL', cpu_percent: 97.6 })];
  t.match(textOf(markupOf({ address: '#/wall', nodes, languages: ['de-AT', 'en'] })), /2 Knoten: 1 KRITISCH, 1 OK/);
  t.match(textOf(markupOf({ address: '#/nodes/robot-3', nodes, languages: ['de'] })), /97,6 %/);
  t.match(textOf(markupOf({ address: '#/wall', nodes, languages: ['xx'] })), /2 nodes/, 'English otherwise');
});

t.test('the system view shows the service, its storage, the graph, jobs, reports and the last shutdown', async (t) => {
  const text = textOf(markupOf({ address: '#/system', nodes: robots(6) }));
  t.match(text, /Monitoring service Version 1\.0\.0 Running for 1 h Publish rate 1\.00 Hz, expected 1\.00 Hz Missed samples 0/);
  t.match(text, /Temperature sensor cpu-thermal Raspberry Pi/);
  t.match(text, /Resource usage 71 MB of memory, 5 s of CPU time in 1 h/);
  t.match(text, /Database 5\.0 MB of at most 500 MB/);
  t.match(text, /Every sample is kept for 8 days/);
  t.match(text, /Transport built-in no ROS 2 is sourced Domain 7 Other participants 5 Subscribers of \/health_status 2/);
  t.match(text, /Published 3600 health statuses, 1 change of an alert/);
  t.match(text, /Nodes shown here 6 nodes/);
  t.match(text, /Reliability .* Last safe shutdown None has been requested\./);
});

t.test('the system view shows what is wrong with the service, and what to do', async (t) => {
  const shown = (status: object): string => textOf(markupOf({ address: '#/system', status }));
  t.match(
    shown({ config: { problem: 'line 3: unknown key', restart_needed: ['rest.port: 5055 needs a restart'] } }),
    /The changed configuration is not in use: line 3: unknown key Restart the service to apply the configuration: rest\.port/,
  );
  const storage = { ...{ state: 'degraded', error: 'disk full', since: null, size_bytes: 1e6, max_bytes: 5e8 } };
  const lost = { ...storage, oldest_sample: null, last_write: null, samples_lost: 12, quarantined: ['edge-health.db.quarantined-1'] };
  t.match(
    shown({ storage: lost }),
    /Measurements cannot be saved: disk full .* Lost samples 12 Damaged databases edge-health\.db\.quarantined-1/,
  );
  const ros = {
    transport: 'off',
    reason: 'ros.transport is off',
    problem: 'not on the graph',
    domain_id: null,
    peers: null,
    subscribers: null,
  };
  const off = shown({ ros: { ...ros, published: null, observing: false, observers: ['robot-1', 'robot-2'] } });
  t.match(off, /not on the graph Transport off ros\.transport is off Nodes shown here 1 node Other nodes are shown by robot-1, robot-2/);
  const shutdown = {
    state: 'aborted',
    action: 'poweroff',
    reason: 'MANUAL',
    requested_by: 'alice',
    seconds_left: null,
    message: 'hook failed',
  };
  t.match(
    shown({ shutdown: { ...shutdown, ended: new Date(NOW_MS).toISOString() } }),
    /Result aborted hook failed Last step poweroff Reason MANUAL Requested by alice Ended \d\d:03:10/,
  );
});

t.test('reports and the progress of a reliability test are shown and can be opened', async (t) => {
  const report = {
    name: 'harness-20260301T000000Z',
    verdict: 'PASS',
    statement: 'All six criteria are met.',
    node_name: 'robot-3',
    begun: new Date(NOW_MS - 700_000_000).toISOString(),
    ended: new Date(NOW_MS - 700_000_000 + 604_800_000).toISOString(),
    observed: true,
  } as const;
  const failed = { ...report, name: '7day', verdict: 'FAIL', observed: false } as const;
  const running = {
    begun: new Date(NOW_MS - 86_400_000).toISOString(),
    planned_seconds: 604_800,
    recorded: new Date(NOW_MS).toISOString(),
  };
  const markup = reportsMarkup({ data: [report, failed], count: 2, running }, false);
  const text = textOf(markup);
  t.match(text, /A test is running: 1 d of 7 d\./);
  t.match(text, /Passed Report of robot-3 .* 7 d · observed from outside All six criteria are met\./);
  t.match(text, /Failed Report of robot-3 .* computed from collected data/);
  t.match(markup, /<a href="reports\?name=harness-20260301T000000Z" target="_blank" rel="noopener">/);
  const locked = reportsMarkup({ data: [report], count: 1, running: null }, true);
  t.match(textOf(locked), 'Save: Report of robot-3', 'a link cannot send the token');
  t.notMatch(locked, '<a href="reports');
  t.match(
    textOf(reportsMarkup({ data: [], count: 0, running: null }, false)),
    /No test has been run\. Start one with: sudo edge-health harness start/,
  );
  const stalled = { ...running, recorded: new Date(NOW_MS - 600_000).toISOString() };
  t.match(
    textOf(reportsMarkup({ data: [], count: 0, running: stalled }, false)),
    /The test is interrupted\. Resume it with: sudo systemctl start/,
  );
});

t.test('the system view of a checkout names the commands of a checkout', async (t) => {
  const reports = { data: [], count: 0, running: null };
  t.match(textOf(reportsMarkup(reports, false, false)), /No test has been run\. Start one with: npm run harness:7day/);
});

t.test('an alert is shown with what it means, what to do, the values around it and its changes', async (t) => {
  const alerts = [alert('robot-3', 'temperature', { value: 81.2 })];
  const markup = markupOf({ address: `#/alerts/${encodeURIComponent('robot-3/temperature/01J')}`, nodes: robots(3), alerts });
  const text = textOf(markup);
  t.match(text, /Temperature is high/);
  t.match(text, /What to do now/);
  t.match(
    markup,
    /<section class="card around"[^>]*aria-busy="true"[\s\S]*role="img" aria-label="Temperature, /,
    'a chart that is loading',
  );
  t.match(text, /Loading…/);
});
