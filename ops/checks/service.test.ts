import t from 'tap';
import type { StatusDocument } from '../../src/client/documents.ts';
import type { Alert } from '../../src/core/alerts/alert.ts';
import { Counters } from './previous-run.ts';
import {
  evaluateAlerts,
  evaluateAnswer,
  evaluateConfiguration,
  evaluateNoAnswer,
  evaluateRate,
  evaluateRos,
  evaluateShutdown,
  evaluateStorage,
} from './service.ts';

const local = { node_name: 'robot1', local: true, status: 'OK', age_seconds: 0.4 };
const status = (more: object = {}): StatusDocument =>
  ({
    status: 'OK',
    version: '1',
    uptime_seconds: 600,
    started: '2026-03-04T05:06:07.089Z',
    nodes: [local],
    ...more,
  }) as unknown as StatusDocument;
const aged = (age: number | null, uptime = 600): StatusDocument =>
  status({ nodes: [{ ...local, age_seconds: age }], uptime_seconds: uptime });

t.test('judges the age of the last sample', async (t) => {
  t.match(evaluateAnswer(aged(0.4), 0.012, 10), { status: 'OK', message: 'responded in 12 ms, last sample 0.4 s old' });
  t.match(evaluateAnswer(aged(10), 0, 10), { status: 'OK' });
  t.match(evaluateAnswer(aged(10.1), 0, 10), {
    status: 'CRITICAL',
    message: 'its last sample is 10.1 s old; at most 10 s are allowed',
    remedy: /restart/,
  });
  t.match(evaluateAnswer(aged(null, 3), 0, 10), { status: 'OK', message: 'has just started' });
  t.match(evaluateAnswer(aged(null, 11), 0, 10), { status: 'CRITICAL' });
  t.match(evaluateAnswer(status({ nodes: [] }), 0, 10), { status: 'CRITICAL' }, 'another node is not this one');
  t.match(evaluateAnswer(aged(0.4), 3.5, 10), { status: 'WARNING', message: 'it took 3.5 s to respond' });
  t.match(evaluateAnswer(status({ status: 'UNKNOWN' }), 0, 10), { status: 'OK' }, 'another node is UNKNOWN');
  t.match(evaluateAnswer(status({ nodes: [{ ...local, status: 'UNKNOWN' }] }), 0, 10), { status: 'WARNING' });
});

t.test('judges a missing response by the state of the unit', async (t) => {
  const unreachable = { kind: 'unreachable', why: 'http://127.0.0.1:5000/status: ECONNREFUSED' } as const;
  t.match(evaluateNoAnswer(unreachable, true), {
    status: 'CRITICAL',
    message: /its unit is active, but there is no response/,
    remedy: /systemctl restart/,
  });
  t.match(evaluateNoAnswer(unreachable, false), { status: 'CRITICAL', remedy: /systemctl status/ });
  t.match(evaluateNoAnswer(unreachable, null), { status: 'CRITICAL', message: /ECONNREFUSED/, remedy: /^start it/ });
  t.match(evaluateNoAnswer({ kind: 'refused', why: 'x', httpStatus: 401 }, true), { status: 'UNKNOWN', remedy: /rest\.token_file/ });
  t.match(evaluateNoAnswer({ kind: 'refused', why: 'x', httpStatus: 500 }, true), { status: 'CRITICAL' });
});

t.test('names the open alerts', async (t) => {
  const open = (CRITICAL: number, ERROR: number, WARNING: number): StatusDocument => status({ open_alerts: { CRITICAL, ERROR, WARNING } });
  const alert: Alert = {
    alert_id: 'ns/robot1/cpu_percent/1',
    severity: 'CRITICAL',
    metric: 'cpu_percent',
    value: 97.25,
    threshold: 95,
    timestamp: '',
    resolved: false,
  };
  t.match(evaluateAlerts(open(0, 0, 0), []), { status: 'OK' });
  t.match(evaluateAlerts(open(1, 0, 3), [{ ...alert, severity: 'WARNING' }, alert]), {
    status: 'CRITICAL',
    message: '1 CRITICAL, 1 WARNING open, such as ns/robot1 cpu_percent 97.25 (95 allowed)',
  });
  t.match(evaluateAlerts(open(3, 4, 5), []), { status: 'OK', isNote: true, message: '12 open on other nodes' }, 'no fault of this one');
  t.match(evaluateAlerts(open(0, 1, 0), null), { status: 'CRITICAL', message: '1 ERROR open' });
  t.match(evaluateAlerts(open(0, 0, 2), null), { status: 'WARNING', message: '2 WARNING open' });
});

t.test('judges the state of the storage', async (t) => {
  const storage = (more: object): StatusDocument =>
    status({
      storage: {
        path: '/data',
        state: 'ok',
        error: null,
        since: null,
        size_bytes: 1e6,
        max_bytes: 512e6,
        samples_pending: 0,
        samples_lost: 0,
        quarantined: [],
        ...more,
      },
    });
  const of = '2026-03-04T05:06:07.089Z';
  const counters = new Counters({ counters: { 'lost samples': { of, value: 5 }, 'alerts not stored': { of, value: 0 } }, statuses: {} });
  t.match(evaluateStorage(storage({ samples_lost: 5 }), counters), { status: 'OK', message: 'ok, 1.0 of 512 MB' });
  t.match(evaluateStorage(storage({ samples_lost: 8 }), counters), {
    status: 'WARNING',
    message: '3 samples were lost since the last check',
  });
  const flooded = { ...storage({ samples_lost: 5 }), remote: { alerts_not_stored: 7 } } as StatusDocument;
  t.match(evaluateStorage(flooded, counters), { status: 'WARNING', message: /^7 alert changes of other nodes, .* not stored$/ });
  t.match(evaluateStorage(storage({ state: 'degraded', error: 'disk is full', since: '2026-03-04T05:06:07.089Z' }), counters), {
    status: 'CRITICAL',
    message: 'degraded since 2026-03-04T05:06:07.089Z: disk is full',
    remedy: /df, dmesg$/,
  });
  t.match(evaluateStorage(storage({ state: 'degraded', error: 'not allowed; run this; then that' }), counters), {
    message: /: not allowed$/,
    remedy: 'run this; then that',
  });
  t.match(evaluateStorage(storage({ quarantined: ['/data/x.quarantined'] }), counters), { status: 'WARNING', message: /x\.quarantined/ });
  t.match(evaluateStorage(storage({ state: 'starting' }), counters), { status: 'OK' });
});

t.test('judges the publish rate', async (t) => {
  const rate = (measured: number | null, uptime = 600): StatusDocument =>
    status({ uptime_seconds: uptime, publish: { configured_hertz: 2, measured_hertz: measured, samples: 1, missed: 0 } });
  t.match(evaluateRate(rate(2)), { status: 'OK', message: '2 Hz, 100.0 % of 2 Hz' });
  t.match(evaluateRate(rate(1.98)), { status: 'OK' });
  t.match(evaluateRate(rate(1.979)), { status: 'WARNING' });
  t.match(evaluateRate(rate(1, 30)), { status: 'OK' }, 'just after the start it means little');
  t.match(evaluateRate(rate(null)), { status: 'OK' });
});

t.test('judges configuration, ROS and safe shutdown', async (t) => {
  const config = (problem: string | null): StatusDocument =>
    status({ config: { file: '/etc/x.yaml', loaded: 'then', problem, restart_needed: [] } });
  t.match(evaluateConfiguration(config(null)), { status: 'OK' });
  t.match(evaluateConfiguration(config('bad key')), {
    status: 'WARNING',
    message: /bad key/,
    remedy: 'edge-health check-config /etc/x.yaml; systemctl reload edge-health',
  });
  const ros = (problem: string | null, transport = 'embedded'): StatusDocument =>
    status({ ros: { transport, domain_id: 0, peers: 2, subscribers: 1, problem } });
  t.match(evaluateRos(ros(null)), { status: 'OK', message: 'embedded, 2 peers' });
  t.match(evaluateRos(ros(null, 'off')), { status: 'OK', message: 'off' });
  t.match(evaluateRos(ros('another monitor of the same name; set node_name; restart')), {
    status: 'WARNING',
    message: 'another monitor of the same name',
    remedy: 'set node_name; restart',
  });
  const fleet = { ...ros(null), ros: { ...ros(null).ros, note: 'others offer /safe_shutdown too' } };
  t.match(evaluateRos(fleet), { status: 'OK', isNote: true, message: 'others offer /safe_shutdown too' }, 'as every appliance does');
  const shutdown = (more: object): StatusDocument =>
    status({ shutdown: { enabled: true, problem: null, state: 'none', message: null, step: null, ...more } });
  t.match(evaluateShutdown(shutdown({})), { status: 'OK', isNote: false });
  t.match(evaluateShutdown(shutdown({ problem: 'logind refuses' })), { status: 'OK', isNote: true, message: /logind refuses/ });
  t.match(evaluateShutdown(shutdown({ problem: 'x', enabled: false })), { isNote: false });
  t.match(evaluateShutdown(shutdown({ state: 'in_progress', message: 'stopping' })), { isNote: true, message: /stopping/ });
});
