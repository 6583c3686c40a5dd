import * as v from 'valibot';
import { SEVERITIES, STATUSES } from '../../core/alerts/alert.ts';
import { SHUTDOWN_ACTIONS, SHUTDOWN_OUTCOMES, SHUTDOWN_REASONS, SHUTDOWN_STATES, SHUTDOWN_STEPS } from '../../core/shutdown/shutdown.ts';
import { count, described, instant, nullable, reading, seconds, text, timestamp } from './fields.ts';
import { opsDocumentSchema } from './ops-schema.ts';

/** The bodies of the REST API; query-schema.ts has the parameters. The types and /openapi.json are both derived from these schemas. */

const statusSchema = v.picklist(STATUSES);
const severitySchema = v.picklist(SEVERITIES);

export const healthStatusSchema = v.strictObject({
  cpu_percent: reading('CPU usage in percent'),
  memory_percent: reading('Memory usage in percent'),
  disk_percent: reading('Usage of the fullest configured file system in percent'),
  temperature: reading('CPU or SoC temperature in degrees Celsius'),
  status: described(
    statusSchema,
    "Worst status of the metrics and of the node's open alerts. UNKNOWN: no metric could be read, or no sample for more than three periods, and no CRITICAL alert is open.",
  ),
  node_name: text('Name of the monitoring node that took the sample.'),
  timestamp: timestamp('Time of the sample, UTC.'),
});

export const historySchema = v.strictObject({
  data: v.array(healthStatusSchema),
  count: count('Number of elements in data.'),
});

export const alertSchema = v.strictObject({
  alert_id: text('`<node_name>/<metric>/<unique id>`; unchanged from raise to resolve.'),
  severity: severitySchema,
  metric: text('The metric that crossed a threshold or became unavailable.'),
  value: described(v.number(), 'The measured value; for ERROR the seconds since the last successful reading.'),
  threshold: described(v.number(), 'The threshold that was crossed; for ERROR the timeout in seconds.'),
  timestamp: timestamp('Time of this change of the alert, UTC.'),
  resolved: v.boolean(),
});

export const alertListSchema = v.strictObject({
  data: v.array(alertSchema),
  count: count('Number of elements in data.'),
});

export const alertDetailSchema = v.strictObject({
  ...alertSchema.entries,
  changes: described(v.array(alertSchema), 'The changes of the alert, the earliest first; at most the latest 10,000.'),
});

const metricAggregateSchema = v.strictObject({
  min: reading('Smallest value'),
  max: reading('Largest value'),
  mean: reading('Mean'),
  stddev: reading('Standard deviation (population)'),
  p50: reading('Median, accurate to 0.1'),
  p95: reading('95th percentile, accurate to 0.1'),
  p99: reading('99th percentile, accurate to 0.1'),
  last: reading('Last value in the range'),
});

const statistics = {
  from: timestamp('Start of the range, inclusive.'),
  to: timestamp('End of the range, exclusive.'),
  samples_received: count('Samples in the range.'),
  samples_expected: count('Samples in the range according to the publish frequency, from the time the node was first seen up to now.'),
  longest_gap_seconds: seconds('Longest time without a sample, not counting suspends and clock steps.'),
  status_seconds: described(
    v.strictObject({ OK: v.number(), WARNING: v.number(), ERROR: v.number(), CRITICAL: v.number(), UNKNOWN: v.number() }),
    'Seconds spent in each status; UNKNOWN begins after three periods without a sample.',
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
  buckets: described(
    v.optional(v.array(v.strictObject(statistics))),
    'With `by`: the same statistics for each minute, hour or day (UTC) of the range.',
  ),
});

const shutdownAction = described(v.picklist(SHUTDOWN_ACTIONS), 'Action of the last step. With `dry-run` the machine stays up.');

export const shutdownEventSchema = v.strictObject({
  request_id: text('Id of the request; unchanged from the announcement to the outcome.'),
  state: v.picklist(SHUTDOWN_STATES),
  step: v.picklist(SHUTDOWN_STEPS),
  reason: v.picklist(SHUTDOWN_REASONS),
  requested_by: v.string(),
  action: shutdownAction,
  seconds_left: seconds('Seconds until the deadline of the request.'),
  message: text('The event as readable text.'),
  timestamp: timestamp('Time of the event, UTC.'),
});

const shutdownRequestSchema = v.strictObject({
  request_id: v.string(),
  timestamp: timestamp('Time of the request; time of the first one if it stands for several.'),
  reason: text('Reason given by the caller, truncated to 64 characters.'),
  requested_by: text('Name given by the caller, truncated to 128 characters.'),
  timeout: nullable(v.number(), 'Timeout given by the caller in seconds; null: not a number.'),
  address: nullable(v.string(), 'Address of the caller; null: the transport does not provide it.'),
  port: nullable(v.number(), 'UDP port of the caller; null: the transport does not provide it.'),
  user: nullable(
    v.string(),
    'User of the calling program on this machine; several candidates are separated by commas. Null: another machine, or unknown.',
  ),
  calls: count('Number of requests that this entry stands for: many refused requests of one caller are combined into one entry.'),
  action: shutdownAction,
  outcome: described(v.picklist(SHUTDOWN_OUTCOMES), '`interrupted`: the service or the machine stopped before the procedure was complete.'),
  step: nullable(v.picklist(SHUTDOWN_STEPS), 'The last step that was started.'),
  message: v.string(),
  ended: nullable(instant, 'Time of the outcome; null: in progress.'),
});

const shutdownSchema = v.strictObject({
  enabled: described(v.boolean(), 'Whether safe shutdown requests are accepted.'),
  action: described(v.picklist(SHUTDOWN_ACTIONS), 'Action of the last step, for a request made now.'),
  problem: nullable(v.string(), 'Why every request is currently refused; null: requests are accepted.'),
  state: described(
    v.picklist(['none', 'in_progress', 'completed', 'aborted', 'interrupted']),
    'State of the last accepted request, including requests before the last restart of the service; `none`: no request yet.',
  ),
  request_id: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  requested_by: v.nullable(v.string()),
  step: v.nullable(v.picklist(SHUTDOWN_STEPS)),
  seconds_left: nullable(v.number(), 'Seconds until the deadline of the request; null: no request in progress.'),
  started: v.nullable(instant),
  ended: v.nullable(instant),
  message: nullable(v.string(), 'The last event as readable text.'),
  accepted: count('Requests accepted since this process started.'),
  refused: count('Requests refused since this process started.'),
  requests: described(v.array(shutdownRequestSchema), 'The last requests, newest first, including refused ones.'),
});

const nodeSchema = v.strictObject({
  node_name: v.string(),
  local: described(v.boolean(), 'Whether this service takes the samples; false: a remote node.'),
  status: statusSchema,
  timestamp: nullable(instant, "Time of the last sample by the node's own clock; null: no sample since the service started."),
  age_seconds: nullable(v.number(), "Seconds since the last sample was received, by this machine's clock."),
  last_seen: nullable(
    instant,
    "When a message of the node was last received, by this machine's clock; a time before the service started is accurate to a few minutes. Null: unknown.",
  ),
  period_seconds: nullable(v.number(), 'Seconds between samples; for a remote node, derived from its timestamps.'),
  clock_ahead_seconds: nullable(
    v.number(),
    "By how much a remote node's timestamps are ahead of this machine's clock, if by more than 60 s: one of the clocks is wrong. Its statuses get the time of their arrival.",
  ),
  conflict_addresses: described(
    v.array(v.string()),
    'The addresses of the machines that publish under this name, first the one whose data is shown, while there are several: the alert `name_conflict` is open. Empty: there is no conflict.',
  ),
  open_alerts: count('Open alerts raised by this node or about it.'),
  left: nullable(
    instant,
    'When a remote node announced that it leaves the graph, as it does when it is stopped. No alert is raised about it, unless `ops.check.nodes` lists it. Null: it has not left, or has returned.',
  ),
  stale: described(v.boolean(), 'No status received within the timeout; for a remote node, the alert `health_status` is open.'),
});

const remoteSchema = v.strictObject({
  statuses: count('Health statuses accepted from remote nodes.'),
  duplicates: count('Health statuses that were received more than once, or over several paths.'),
  late: count('Health statuses that arrived after a newer one.'),
  not_stored: count('Health statuses shown but not stored, because their clock steps too often, or is wrong and they were repeated.'),
  refused: count('Health statuses refused because of the limits on nodes and rates, or because another machine publishes under the name.'),
  evicted: count('Stale nodes removed to make space for others because the list was full.'),
  alerts: count('Changes of alerts accepted from remote nodes.'),
  alerts_refused: count('Changes of alerts refused because of the limits, or because another participant raised the alert.'),
  alerts_not_stored: count(
    'Changes of alerts received after the daily write budget was used up. They are shown, and stored the next day as far as memory could hold them.',
  ),
});

const sensorSchema = v.strictObject({
  sensor: nullable(v.string(), "The selected sensor: a thermal zone's type or hwmon-name/label."),
  path: v.nullable(v.string()),
  reason: text('Why this sensor was selected, or why none was.'),
  rejected: v.array(v.strictObject({ sensor: v.string(), path: v.string(), celsius: v.nullable(v.number()), reason: v.string() })),
});

const diskSchema = v.strictObject({
  path: v.string(),
  percent: nullable(v.number(), 'Disk usage in percent; null: unavailable.'),
  inodes_percent: nullable(v.number(), 'Inodes in use in percent; null: unavailable, or the file system has no fixed number of inodes.'),
  problem: nullable(
    v.string(),
    'Why it is unavailable, or why it is faulty although it can be read. Null: nothing is wrong; if `percent` is null too, it is an automount that is not in use, which is not read because that would mount it.',
  ),
});

const thresholdsSchema = v.nullable(v.strictObject({ warning: v.number(), critical: v.number() }));

export const statusDocumentSchema = v.strictObject({
  status: described(statusSchema, 'The worst status of all nodes and open alerts, in the order CRITICAL, ERROR, UNKNOWN, WARNING, OK.'),
  version: v.string(),
  installed: described(v.boolean(), 'Whether the service is that of the package; false: that of a checkout.'),
  started: timestamp('When the service started.'),
  uptime_seconds: seconds('Seconds since the service started.'),
  host: nullable(
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
    'Inventory of this machine; null for the first seconds after the service started.',
  ),
  nodes: described(v.array(nodeSchema), 'This node and every remote node that was seen recently or is expected on the graph.'),
  remote: nullable(remoteSchema, 'Messages received from remote nodes since the service started; null: remote nodes are not observed.'),
  open_alerts: v.strictObject({ WARNING: v.number(), ERROR: v.number(), CRITICAL: v.number() }),
  publish: v.strictObject({
    configured_hertz: v.number(),
    measured_hertz: nullable(v.number(), 'Rate over the last minute; null until two samples have been taken.'),
    samples: count('Samples taken since the service started.'),
    missed: count('Samples missed since the service started.'),
  }),
  thresholds: described(
    v.strictObject({
      cpu_percent: thresholdsSchema,
      memory_percent: thresholdsSchema,
      disk_percent: thresholdsSchema,
      temperature: thresholdsSchema,
    }),
    "The thresholds applied to this machine's metrics, in the metric's unit; null: the metric is switched off.",
  ),
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
  memory: nullable(
    v.strictObject({
      total_bytes: count('Memory of the machine.'),
      available_bytes: count('Available to programs without swapping; `memory_percent` is the share of all other memory.'),
      zfs_reclaimable_bytes: nullable(v.number(), 'Part of the ZFS cache (ARC) that counts as available; null: no ZFS.'),
      huge_pages_bytes: count("Reserved as huge pages (`vm.nr_hugepages`): not available, and in no program's resident memory."),
      huge_pages_free_bytes: count('Part of `huge_pages_bytes` that no program uses; pages of the default size only.'),
    }),
    'The last reading in detail; null: none yet.',
  ),
  disks: described(v.array(diskSchema), 'The paths of `disk.paths`; `disk_percent` is the usage of the fullest.'),
  temperature_sensor: v.nullable(sensorSchema),
  power: v.strictObject({
    undervoltage: nullable(v.boolean(), 'Raspberry Pi: supply below 4.63 V; null: not reported by the kernel.'),
    undervoltage_events: nullable(
      v.number(),
      'Times that the supply fell below 4.63 V since the service started, sampled with the metrics; null: not reported by the kernel.',
    ),
    last_undervoltage: nullable(instant, 'When the supply was last below 4.63 V; null: not since the service started.'),
    throttle_events: nullable(
      v.number(),
      'Thermal throttling events: on Intel since boot, each core and each package once; on a Raspberry Pi since the service started. Null: not reported by the kernel.',
    ),
  }),
  clock_events: described(
    v.array(v.strictObject({ kind: v.picklist(['step', 'suspend']), timestamp: instant, delta_seconds: v.number() })),
    'The last clock steps and suspends, newest first.',
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
    quarantined: v.array(v.string()),
  }),
  rest: v.strictObject({
    problem: nullable(v.string(), 'Why the service does not listen on its port, which is retried; null: it listens.'),
    connections: v.number(),
    event_streams: v.number(),
    evicted_connections: count('Connections closed or refused since the service started because of rest.max_connections.'),
    dropped_connections: count(
      'Connections closed since the service started because the client stopped reading, or because its responses held too much memory.',
    ),
    dropped_event_streams: count('Event streams closed since the service started because the client stopped reading.'),
  }),
  ros: v.strictObject({
    transport: v.picklist(['rclnodejs', 'embedded', 'off']),
    reason: text('Why this transport is used, or why none is.'),
    domain_id: nullable(v.number(), 'ROS 2 domain; null: not on the graph.'),
    peers: nullable(v.number(), 'Other participants (embedded) or nodes (rclnodejs) on the graph; null: unknown.'),
    subscribers: nullable(v.number(), 'Subscribers of /health_status; null: unknown.'),
    refused: count('Messages and datagrams refused since the service started.'),
    published: nullable(
      v.strictObject({
        health_status: count('Health statuses of this node, on /health_status.'),
        alerts: count('Changes of alerts, on /alerts; alerts that were open when the service started are published again.'),
      }),
      'Messages published since the service started; null: not on the graph.',
    ),
    problem: nullable(
      v.string(),
      'Current problem, such as another node with the same name, or why edge-health has not joined the ROS 2 graph; null: none.',
    ),
    note: nullable(
      v.string(),
      'What callers should know although nothing is wrong, such as that several machines offer /safe_shutdown; null: nothing.',
    ),
    observing: described(v.boolean(), 'Whether this node receives the statuses and alerts of remote nodes.'),
    observers: described(v.array(v.string()), 'The nodes that observe all others; the first one publishes alerts about them.'),
  }),
  ports: described(
    v.array(
      v.strictObject({
        protocol: v.picklist(['tcp', 'udp', 'unix']),
        address: text('IP address, where `::` or `0.0.0.0` stands for all addresses; for a Unix socket, the path.'),
        port: v.nullable(v.number()),
        purpose: v.string(),
      }),
    ),
    'Open ports and Unix sockets of the service.',
  ),
  process: v.strictObject({
    resident_memory_bytes: count('Resident memory of the service.'),
    cpu_seconds: seconds('CPU time of the service since it started.'),
    open_files: nullable(v.number(), 'Open files and sockets of the service; null: not reported by the kernel.'),
  }),
  ops: opsDocumentSchema,
  shutdown: shutdownSchema,
  control_socket: nullable(v.string(), 'Path of the Unix socket for `edge-health nodes forget`; null: it could not be opened.'),
  config: v.strictObject({
    file: v.string(),
    loaded: instant,
    problem: nullable(v.string(), 'Why the last reload was rejected.'),
    restart_needed: described(
      v.array(v.string()),
      'Keys whose change needs a restart, as of the last reload, such as `rest.port: 5055 needs a restart; still 5000`.',
    ),
  }),
});

export const problemSchema = v.strictObject({
  type: v.string(),
  title: v.string(),
  status: v.number(),
  code: text('Stable identifier of the error.'),
  detail: v.string(),
  parameter: v.optional(v.string()),
  allowed: v.optional(v.string()),
});

export type StatusDocument = v.InferOutput<typeof statusDocumentSchema>;
export type AggregateDocument = v.InferOutput<typeof aggregateSchema>;
