import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { MAX_LINES, messageOf, plainText, subjectLine, testMessage } from './message.ts';
import { facts, jobLine, line, open } from './testing/lines.ts';

const schema = JSON.parse(readFileSync(`${import.meta.dirname}/../../docs/notification.schema.json`, 'utf8')) as object;
const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
(addFormats as unknown as (instance: Ajv2020) => void)(ajv);
const validate = ajv.compile(schema);

t.test('a node name that can be mistaken for another one is spelled', async (t) => {
  const message = messageOf(facts, [line('raised', 'CRITICAL', 'm\u043en'), line('resolved', 'WARNING', 'm\u043en', 'disk_percent')], []);
  const text = plainText(message);
  t.match(text, 'temperature of m\u043en (m\\u{43e}n) is ');
  t.match(text, 'disk usage of m\u043en (m\\u{43e}n): resolved');
});

t.test('a message contains what, where, how much, since when, what to do and where to look', async (t) => {
  const message = messageOf(
    facts,
    [line('raised', 'CRITICAL'), line('resolved', 'WARNING', 'robot_2', 'disk_percent')],
    [open('CRITICAL'), open('WARNING', 'robot_3', 'cpu_percent')],
  );
  t.equal(subjectLine(message), '[robot-7] CRITICAL: temperature of health_monitor is 91.2 °C (threshold 85 °C), and 1 more');
  const withRemedy = { ...message, summary: 'backup_logs failed: disk full; remove old files' };
  t.equal(subjectLine(withRemedy), '[robot-7] CRITICAL: backup_logs failed: disk full', 'the remedy is in the text');
  t.equal(
    plainText(message),
    `CRITICAL  temperature of health_monitor is 91.2 °C (threshold 85 °C)
    since 2026-03-04T05:00:00.000Z
    Check fan, airflow and load; see edge-health sensors.
RESOLVED  disk usage of robot_2: resolved, was WARNING
    since 2026-03-04T05:00:00.000Z, until 2026-03-04T05:06:00.000Z

Still open (2 in all):
WARNING  CPU usage of robot_3 is 91.2 % (threshold 85 %), since 2026-03-04T05:00:00.000Z

Dashboard: http://robot-7:5000
Notification robot-7-abc-1 of robot-7, 2026-03-04T05:06:07.089Z
`,
  );
});

t.test('the status is the worst of the open lines, and RESOLVED if there are only resolutions', async (t) => {
  t.equal(messageOf(facts, [line('raised', 'WARNING'), line('resolved', 'CRITICAL')], []).status, 'WARNING');
  t.equal(messageOf(facts, [line('passed', 'CRITICAL')], [open('CRITICAL', 'other')]).status, 'RESOLVED');
  const reminder = messageOf(facts, [], [open('ERROR', 'a', 'health_status'), open('WARNING')]);
  t.match(reminder, { kind: 'reminder', status: 'ERROR', summary: 'still open: no data from a for 91.2 s (allowed 85 s), and 1 more' });
  t.match(plainText(reminder), /ros2 node list/);
  const channel = messageOf(facts, [], [open('ERROR', 'a', 'ros_graph')]);
  t.match(channel, { summary: 'still open: ROS 2 graph of a unavailable for 91.2 s (allowed 85 s)' });
  t.match(plainText(channel), /ss -lunp/);
});

t.test('a failed job includes its output', async (t) => {
  const message = messageOf(facts, [jobLine('backup_logs', 'CRITICAL', ['OK  journal', 'CRITICAL  disk: full; free some'])], []);
  t.equal(message.summary, 'backup_logs failed: disk: full; free some');
  t.match(
    plainText(message),
    /CRITICAL {2}backup_logs failed: disk: full; free some\n.*\n {4}CRITICAL {2}disk: full; free some\n {4}See edge-health ops backup_logs/,
  );
  t.equal(messageOf(facts, [jobLine('collect_metrics', 'UNKNOWN', [])], []).summary, 'collect_metrics failed');
  t.equal(messageOf(facts, [jobLine('health_check', 'WARNING', [])], []).summary, 'health_check is WARNING');
  const found = [
    'CRITICAL  3 of 11 checks: unit, clock, alerts',
    'CRITICAL  unit edge-health: failed',
    'WARNING  clock: off; see chronyc',
    'WARNING  alerts: 1 open',
  ];
  t.equal(
    messageOf(facts, [jobLine('health_check', 'CRITICAL', found)], []).summary,
    'health_check: unit edge-health: failed (and 1 more)',
  );
});

t.test('every message conforms to the schema, and no text has control characters', async (t) => {
  const state = fc.constantFrom('raised' as const, 'changed' as const, 'resolved' as const, 'passed' as const);
  const severity = fc.constantFrom('WARNING' as const, 'ERROR' as const, 'CRITICAL' as const);
  // Includes unpaired surrogates.
  const codeUnit = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
  const name = fc.oneof(
    fc.string({ unit: codeUnit, maxLength: 20 }),
    fc.constantFrom('🤖'.repeat(400), '\u001b[31m\r\nBcc: x', 'a\u202eb'),
  );
  const metric = fc.constantFrom('cpu_percent', 'temperature', 'health_status', 'new_metric');
  const lines = fc.array(fc.tuple(state, severity, name, metric), { maxLength: 60 });
  fc.assert(
    fc.property(lines, fc.array(fc.tuple(severity, name, metric), { minLength: 1, maxLength: 60 }), (given, opened) => {
      const message = messageOf(
        facts,
        given.map((parts) => line(...parts)),
        opened.map((parts) => open(...parts)),
      );
      const isValid = validate(message);
      if (!isValid) throw new Error(JSON.stringify(validate.errors?.slice(0, 3)));
      const sent = `${subjectLine(message)}${message.alerts.map(({ text }) => text).join('')}`;
      return (
        message.alerts.length <= MAX_LINES && message.omitted === given.length - message.alerts.length && !/\p{C}|(?! )\p{Z}/u.test(sent)
      );
    }),
    { numRuns: runs(20, 300), seed: SEED },
  );
  t.ok(validate(testMessage(facts)), JSON.stringify(validate.errors));
  t.notOk(validate({ ...testMessage(facts), status: 'FINE' }), 'the schema refuses what it should');
});
