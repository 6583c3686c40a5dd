import * as v from 'valibot';
import { SEVERITIES } from '../../core/alert.ts';
import { SHUTDOWN_ACTIONS, SHUTDOWN_REASONS, SHUTDOWN_STATES, SHUTDOWN_STEPS } from '../../core/shutdown.ts';
import { SHUTDOWN_OUTCOMES } from '../../core/shutdown-record.ts';
import { STATUSES } from '../../core/thresholds.ts';
import { about, count, instant, reading, seconds, text, timestamp } from './fields.ts';
import { opsDocumentSchema } from './ops-schema.ts';

/** The bodies of the REST API, once, as query-schema.ts has its parameters. From here come the types and /openapi.json. */

export const statusSchema = v.picklist(STATUSES);
export const severitySchema = v.picklist(SEVERITIES);

export const healthStatusSchema = v.strictObject({
  cpu_percent: reading('CPU usage in percent'),
  memory_percent: reading('Memory usage in percent'),
  disk_percent: reading('Usage of the fullest configured file system in percent'),
  temperature: reading('CPU or SoC temperature in degrees Celsius'),
  status: v.pipe(
    statusSchema,
    about(
      "Worst of the metrics and of the node's open alerts; UNKNOWN: nothing could be measured, or no sample for more than three periods.",
    ),
  ),
  node_name: text('Name of the monitoring node that produced it.'),
  timestamp: timestamp('When it was measured, UTC.'),
});

export const historySchema = v.strictObject({
  data: v.array(healthStatusSchema),
  count: count('Number of elements in data.'),
});

export const alertSchema = v.strictObject({
  alert_id: text('`<node_name>/<metric>/<unique id>`; the same from raise to resolve.'),
  severity: severitySchema,
  metric: text('The metric that crossed a threshold or fell silent.'),
  value: v.pipe(v.number(), about('The measured value; for ERROR the seconds since the last good reading.')),
  threshold: v.pipe(v.number(), about('The threshold that was crossed; for ERROR the seconds allowed.')),
  timestamp: timestamp('When this change of the alert happened, UTC.'),
  resolved: v.boolean(),
});

export const alertListSchema = v.strictObject({
  data: v.array(alertSchema),
  count: count('Number of elements in data.'),
});

const metricAggregateSchema = v.strictObject({
  min: reading('Smallest value'),
  max: reading('Largest value'),
  mean: reading('Mean'),
  stddev: reading('Standard deviation (population)'),
  p50: reading('Median, true to 0.1'),
  p95: reading('95th percentile, true to 0.1'),
  p99: reading('99th percentile, true to 0.1'),
  last: reading('Last value in the range'),
});

const statistics = {
  from: timestamp('Beginning of the range, inclusive.'),
  to: timestamp('End of the range, exclusive.'),
  samples_received: count('Samples in the range.'),
  samples_expected: count('Samples that the publish frequency asks for since the node was first seen, up to now.'),
  longest_gap_seconds: seconds('Longest time without a sample; suspends and clock steps are taken off.'),
  status_seconds: v.pipe(
    v.strictObject({ OK: v.number(), WARNING: v.number(), ERROR: v.number(), CRITICAL: v.number(), UNKNOWN: v.number() }),
    about('Seconds in each status; UNKNOWN after three periods without a sample.'),
  ),
  metrics: v.strictObject({
    cpu_percent: metricAggregateSchema,
    memory_percent: metricAggregateSchema,
    disk_percent: metricAggregateSchema,
    temperature: metricAggregateSchema,
  }),
};

export const aggregateSchema = v.strictObject({
  node_name: v.string(),
  ...statistics,
  buckets: v.pipe(
    v.optional(v.array(v.strictObject(statistics))),
    about('With `by`: the same for each minute, hour or day (UTC) of the range.'),
  ),
});

const shutdownAction = v.pipe(v.picklist(SHUTDOWN_ACTIONS), about('What the last step does; `dry-run`: nothing, the machine stays up.'));

export const shutdownEventSchema = v.strictObject({
  request_id: text('Of the request; the same from announcement to end.'),
  state: v.picklist(SHUTDOWN_STATES),
  step: v.picklist(SHUTDOWN_STEPS),
  reason: v.picklist(SHUTDOWN_REASONS),
  requested_by: v.string(),
  action: shutdownAction,
  seconds_left: seconds('Until the deadline.'),
  message: text('What happened, for people.'),
  timestamp: timestamp('When, UTC.'),
});

const shutdownRequestSchema = v.strictObject({
  request_id: v.string(),
  timestamp: timestamp('When it was called; of several calls, the first.'),
  reason: text('As it was called, cut to 64 characters.'),
  requested_by: text('As it was called, cut to 128 characters.'),
  timeout: v.pipe(v.nullable(v.number()), about('Seconds; null: not a number.')),
  address: v.pipe(v.nullable(v.string()), about('Address of the caller; null: not known by the transport.')),
  port: v.pipe(v.nullable(v.number()), about('UDP port of the caller; null: not known by the transport.')),
  user: v.pipe(
    v.nullable(v.string()),
    about('User of the calling program on this machine; several candidates are separated by commas. Null: another machine, or not known.'),
  ),
  calls: count('How many calls this stands for: a flood of refused ones is counted in one.'),
  action: shutdownAction,
  outcome: v.pipe(v.picklist(SHUTDOWN_OUTCOMES), about('`interrupted`: the service or the machine ended before the procedure did.')),
  step: v.pipe(v.nullable(v.picklist(SHUTDOWN_STEPS)), about('The last step started.')),
  message: v.string(),
  ended: v.pipe(v.nullable(instant), about('Time of the outcome; null: in progress.')),
});

const shutdownSchema = v.strictObject({
  enabled: v.pipe(v.boolean(), about('Whether safe shutdown requests are accepted.')),
  action: v.pipe(v.picklist(SHUTDOWN_ACTIONS), about('What the last step of a request made now would do.')),
  problem: v.pipe(v.nullable(v.string()), about('Why every request is refused at present; null: requests are accepted.')),
  state: v.pipe(
    v.picklist(['none', 'in_progress', 'completed', 'aborted', 'interrupted']),
    about('State of the last accepted request, including those of earlier runs of the service; `none`: no request yet.'),
  ),
  request_id: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  requested_by: v.nullable(v.string()),
  step: v.nullable(v.picklist(SHUTDOWN_STEPS)),
  seconds_left: v.pipe(v.nullable(v.number()), about('Seconds until the deadline; null: none in progress.')),
  started: v.nullable(instant),
  ended: v.nullable(instant),
  message: v.pipe(v.nullable(v.string()), about('Last event, as text.')),
  accepted: count('Requests accepted since this process started.'),
  refused: count('Requests refused since this process started.'),
  requests: v.pipe(v.array(shutdownRequestSchema), about('The last requests, newest first, including refused ones.')),
});

const nodeSchema = v.strictObject({
  node_name: v.string(),
  local: v.pipe(v.boolean(), about('Measured by this process.')),
  status: statusSchema,
  timestamp: v.pipe(v.nullable(instant), about("Of the last sample, by the node's own clock; null: none since the start.")),
  age_seconds: v.pipe(v.nullable(v.number()), about("Since the last sample arrived, by this machine's clock.")),
  last_seen: v.pipe(
    v.nullable(instant),
    about("When it last sent anything, by this machine's clock, also before the start (then true to some minutes); null: not known."),
  ),
  period_seconds: v.pipe(v.nullable(v.number()), about('Seconds between samples; of a remote node derived from its time stamps.')),
  clock_ahead_seconds: v.pipe(
    v.nullable(v.number()),
    about("How far a remote node's time stamps lie ahead of this machine's clock, if more than 60 s: one of the clocks is wrong."),
  ),
  open_alerts: count('Open alerts of this node, and about it.'),
  left: v.pipe(
    v.nullable(instant),
    about(
      'When a remote node left the graph in an orderly way: no alert is raised about it, unless it is in `ops.check.nodes`. Null: it did not, or is back.',
    ),
  ),
  silent: v.pipe(v.boolean(), about('No status received for too long; for a remote node this is an open alert (`health_status`).')),
});

const gatheredSchema = v.strictObject({
  statuses: count('Health statuses of other nodes that were taken.'),
  duplicates: count('Statuses that were sent again.'),
  late: count('Statuses that were overtaken by newer ones.'),
  not_stored: count('Statuses that are shown but not stored: their time is impossible, or their clock jumps too often.'),
  refused: count('Statuses beyond the limits on nodes and rates.'),
  evicted: count('Nodes that fell silent and gave their place to others, because the list was full.'),
  alerts: count('Changes of alerts of other nodes that were taken.'),
  alerts_refused: count('Changes of alerts beyond the limits.'),
  alerts_not_stored: count(
    'Changes of alerts that came when what they may write in a day was spent: shown, and stored only as far as memory holds them until the next day.',
  ),
});

const sensorSchema = v.strictObject({
  sensor: v.pipe(v.nullable(v.string()), about("The chosen sensor: a thermal zone's type or hwmon-name/label.")),
  path: v.nullable(v.string()),
  reason: text('Why this one, or why none.'),
  rejected: v.array(v.strictObject({ sensor: v.string(), path: v.string(), celsius: v.nullable(v.number()), reason: v.string() })),
});

const diskSchema = v.strictObject({
  path: v.string(),
  percent: v.pipe(v.nullable(v.number()), about('Used; null: unavailable.')),
  problem: v.pipe(v.nullable(v.string()), about('Why it is unavailable.')),
});

export const statusDocumentSchema = v.strictObject({
  status: v.pipe(statusSchema, about('The worst of all nodes.')),
  version: v.string(),
  started: timestamp('When this process started.'),
  uptime_seconds: seconds('How long this process has run.'),
  host: v.pipe(
    v.nullable(
      v.strictObject({
        hostname: v.string(),
        model: v.string(),
        os: v.string(),
        kernel: v.string(),
        architecture: v.string(),
        cpu: v.string(),
        cores: v.number(),
        memory_bytes: v.number(),
        virtual: v.boolean(),
      }),
    ),
    about('Inventory of this machine; null until it has been read, shortly after the start.'),
  ),
  nodes: v.pipe(v.array(nodeSchema), about('This node and every remote node that was seen recently or is expected.')),
  gathered: v.pipe(
    v.nullable(gatheredSchema),
    about('Messages received from remote nodes since the start; null: remote nodes are not observed.'),
  ),
  open_alerts: v.strictObject({ WARNING: v.number(), ERROR: v.number(), CRITICAL: v.number() }),
  publish: v.strictObject({
    configured_hertz: v.number(),
    measured_hertz: v.pipe(v.nullable(v.number()), about('Over the last minute; null until two samples have been taken.')),
    samples: count('Samples taken since the start.'),
    missed: count('Slots of the sampling grid that were missed since the start.'),
  }),
  collectors: v.array(
    v.strictObject({
      metric: v.string(),
      available: v.boolean(),
      problem: v.nullable(v.string()),
      age_seconds: v.nullable(v.number()),
      duration_seconds: v.number(),
      failures: v.number(),
    }),
  ),
  disks: v.pipe(v.array(diskSchema), about('The configured paths; `disk_percent` is the fullest.')),
  temperature_sensor: v.nullable(sensorSchema),
  power: v.strictObject({
    undervoltage: v.pipe(v.nullable(v.boolean()), about('Raspberry Pi: supply below 4.63 V; null: not reported by the kernel.')),
    throttle_events: v.pipe(
      v.nullable(v.number()),
      about('Intel: thermal throttling events since boot; null: not reported by the kernel.'),
    ),
  }),
  clock_events: v.pipe(
    v.array(v.strictObject({ kind: v.picklist(['step', 'suspend']), timestamp: instant, delta_seconds: v.number() })),
    about('The last steps of the wall clock and suspends, newest first.'),
  ),
  storage: v.strictObject({
    path: v.string(),
    state: v.picklist(['starting', 'ok', 'degraded']),
    error: v.nullable(v.string()),
    since: v.nullable(instant),
    size_bytes: v.number(),
    max_bytes: v.number(),
    oldest_sample: v.nullable(instant),
    samples_pending: v.number(),
    samples_lost: v.number(),
    last_write: v.nullable(instant),
    set_aside: v.array(v.string()),
  }),
  rest: v.strictObject({
    connections: v.number(),
    event_streams: v.number(),
    evicted_connections: count('Connections that were closed or refused since the start because there were too many.'),
    dropped_connections: count(
      'Connections that were closed since the start because their readers took nothing for too long, or held too much memory.',
    ),
    dropped_event_streams: count('Event streams that were closed since the start because their readers took nothing.'),
  }),
  ros: v.strictObject({
    transport: v.picklist(['rclnodejs', 'embedded', 'off']),
    reason: text('Why this transport, or why none.'),
    domain_id: v.pipe(v.nullable(v.number()), about('ROS 2 domain; null: not on the graph.')),
    peers: v.pipe(v.nullable(v.number()), about('Other participants (embedded) or nodes (rclnodejs) on the graph; null: not known.')),
    subscribers: v.pipe(v.nullable(v.number()), about('Of /health_status; null: not known.')),
    refused: count('Messages and datagrams that were refused since the start.'),
    published: v.pipe(
      v.nullable(
        v.strictObject({
          health_status: count('Health statuses of this node, on /health_status.'),
          alerts: count('Changes of alerts, on /alerts; those that were open at the start are published again.'),
        }),
      ),
      about('Messages published since the start; null: not on the graph.'),
    ),
    problem: v.pipe(
      v.nullable(v.string()),
      about('Current problem, such as another monitor of the same name, or why edge-health has not joined the ROS 2 graph; null: none.'),
    ),
    observing: v.pipe(v.boolean(), about('Whether this node receives the statuses and alerts of remote nodes.')),
    observers: v.pipe(
      v.nullable(v.array(v.string())),
      about('The nodes that observe all others; the first one publishes alerts about them. Null: not known (rclnodejs).'),
    ),
  }),
  ports: v.pipe(
    v.array(
      v.strictObject({
        protocol: v.picklist(['tcp', 'udp', 'unix']),
        address: text('IP address, `::` or `0.0.0.0` for all; of a Unix socket its path.'),
        port: v.nullable(v.number()),
        purpose: v.string(),
      }),
    ),
    about('Open ports and Unix sockets of the service.'),
  ),
  process: v.strictObject({
    resident_memory_bytes: count('Resident memory of the service.'),
    cpu_seconds: seconds('CPU time of the service since its start.'),
    open_files: v.pipe(v.nullable(v.number()), about('Open files and sockets of the service; null: not reported by the kernel.')),
  }),
  ops: opsDocumentSchema,
  shutdown: shutdownSchema,
  control_socket: v.pipe(v.nullable(v.string()), about('Unix socket for `edge-health nodes forget`; null: it could not be opened.')),
  config: v.strictObject({
    file: v.string(),
    loaded: instant,
    problem: v.pipe(v.nullable(v.string()), about('Why the last reload was rejected.')),
    restart_needed: v.pipe(
      v.array(v.string()),
      about('Changed keys that need a restart, as of the last reload: `rest.port: 5055 needs a restart; still 5000`.'),
    ),
  }),
});

export const problemSchema = v.strictObject({
  type: v.string(),
  title: v.string(),
  status: v.number(),
  code: text('Stable identifier of the kind of error.'),
  detail: v.string(),
  parameter: v.optional(v.string()),
  allowed: v.optional(v.string()),
});

export type StatusDocument = v.InferOutput<typeof statusDocumentSchema>;
export type AggregateDocument = v.InferOutput<typeof aggregateSchema>;
