/**
 * The entries of record.ndjson, one JSON object per line. Each has one schema, from which its type is derived and against which a record is
 * checked. Each line ends with `"n"`, its number from 0, and `"hash"` (chain.ts).
 */
import * as v from 'valibot';
import { SEVERITIES } from '../../src/core/alerts/alert.ts';

export const RECORD_FILE = 'record.ndjson';
export const RECORD_VERSION = 1;

/** The two channels on which statuses and alerts are received: ROS 2 topics, and the event stream of REST. */
export const CHANNELS = ['topic', 'events'] as const;
export type Channel = (typeof CHANNELS)[number];

/** Why the previous run ended. `first`: there was none; `stopped`: on request, for example by systemctl; `upgrade`: to another version. */
export const CAUSES = [
  'first',
  'reboot',
  'watchdog',
  'signal',
  'core-dump',
  'oom-kill',
  'exit',
  'timeout',
  'stopped',
  'upgrade',
  'unknown',
] as const;
export type Cause = (typeof CAUSES)[number];

// The message of each schema names the expected value.
const number = v.number('a number');
const amount = v.pipe(v.number('0 or more'), v.minValue(0, '0 or more'));
const positive = v.pipe(v.number('above 0'), v.gtValue(0, 'above 0'));
const integer = v.pipe(v.number('a whole number'), v.safeInteger('a whole number'));
const count = v.pipe(v.number('a count'), v.safeInteger('a count'), v.minValue(0, 'a count'));
const text = v.string('a text');
const boolean = v.boolean('true or false');
const oneOf = <const T extends readonly string[]>(values: T) => v.picklist(values, `one of ${values.join(', ')}`);
const list = <T extends v.GenericSchema>(item: T) => v.pipe(v.array(item, 'a list'), v.readonly());
/** For long lists, because valibot creates an object for each item. */
const integers = v.pipe(
  v.custom<readonly number[]>(Array.isArray, 'a list'),
  v.rawCheck(({ addIssue, dataset }) => {
    const wrong = dataset.typed ? dataset.value.findIndex((value) => !Number.isSafeInteger(value)) : -1;
    if (wrong >= 0) addIssue({ message: 'a whole number', input: (dataset.value as readonly unknown[])[wrong] });
  }),
);
/** Additional members are allowed. */
const object = <T extends v.ObjectEntries>(entries: T) =>
  v.object(entries, ({ path }) => (path ? expected(entries[path[0].key as string]) : 'an object'));

function expected(schema: object | undefined): string {
  const { message, wrapped } = schema as { readonly message?: unknown; readonly wrapped?: object };
  return wrapped ? expected(wrapped) : typeof message === 'string' ? message : 'an object';
}

const clocks = {
  /** Seconds of CLOCK_BOOTTIME, which advances during a suspend. */
  boot: number,
  /** Seconds of CLOCK_MONOTONIC, which stops during a suspend. */
  mono: number,
  /** Milliseconds since the epoch. */
  wall: number,
};
/** The clocks of the observer's machine when the entry was written. */
export type Clocked = Readonly<v.InferOutput<v.ObjectSchema<typeof clocks, undefined>>>;

const transport = oneOf(['rclnodejs', 'embedded', 'off']);
const machine = object({
  hostname: text,
  model: text,
  os: text,
  kernel: text,
  architecture: text,
  cpu: text,
  cores: count,
  memory_bytes: amount,
});
export type Machine = Readonly<v.InferOutput<typeof machine>>;

/** The observed service. */
const target = object({
  /**
   * `unit`: a systemd unit on this machine; `started`: started by the harness itself, in a checkout; `url`: reached
   * only over REST and the graph.
   */
  kind: oneOf(['unit', 'started', 'url']),
  url: text,
  unit: v.nullable(text),
  node_name: text,
  version: text,
  configured_hertz: positive,
  service_transport: transport,
  /** `storage.path` of the service; null if not readable from here. */
  data_folder: v.nullable(text),
});
export type Target = Readonly<v.InferOutput<typeof target>>;

const observer = object({
  version: text,
  transport,
  /** Why this transport was chosen, for display. */
  reason: text,
  machine: v.nullable(machine),
});
export type Observer = Readonly<v.InferOutput<typeof observer>>;

const session = { boot_id: text, target, observer };

/** Statuses of the observed node received since the last `minute`, `begin` or `resume`, in order of arrival. */
const received = v.pipe(
  object({
    /** Time stamp of the first one, in ms since the epoch; null if there is none. */
    first: v.nullable(integer),
    /** Differences between successive time stamps, in ms; negative if out of order, 0 for a repeated stamp. One fewer than the statuses. */
    steps: integers,
    /** The longest time from time stamp to arrival, in ms by this machine's clock. */
    slowest_ms: v.nullable(number),
    /** The shortest such time; far from 0 if the clock of the observed machine differs. */
    fastest_ms: v.nullable(number),
  }),
  v.rawCheck(({ addIssue, dataset }) => {
    if (!dataset.typed || dataset.value.first !== null || dataset.value.steps.length === 0) return;
    const { value } = dataset;
    addIssue({
      message: 'empty, as first is null',
      input: value.steps.length,
      path: [{ type: 'object', origin: 'value', input: value, key: 'steps', value: value.steps }],
    });
  }),
);
export type Received = Readonly<v.InferOutput<typeof received>>;

/** The last reading of /status, /proc and the control group in a minute. Null values are not available. */
const reading = object({
  /** Start of the process according to /status; distinguishes the runs of the service. */
  started: text,
  /** Counters of that run. */
  samples: count,
  missed: count,
  /** Health statuses passed to the ROS 2 graph; null if not on the graph. */
  published: v.nullable(count),
  samples_lost: count,
  /** Resident memory of the main process at every reading since the last entry, oldest first. */
  resident_bytes: list(amount),
  /** CPU time of the run so far: of its control group if known, otherwise of the process. */
  cpu_seconds: amount,
  cpu_from: oneOf(['group', 'process', 'status']),
  group: v.nullable(object({ memory_bytes: amount, anon_bytes: amount, restarts: v.nullable(count) })),
  open_files: v.nullable(count),
  open_alerts: object({ WARNING: count, ERROR: count, CRITICAL: count }),
  configured_hertz: positive,
  database_bytes: amount,
});
export type ServiceReading = Readonly<v.InferOutput<typeof reading>>;

const severity = oneOf(SEVERITIES);
const openAlert = object({ alert_id: text, severity, metric: text });
export type OpenAlert = Readonly<v.InferOutput<typeof openAlert>>;

/** `from`, `to`: time stamps of the neighbours, in ms since the epoch. */
const stampGap = object({ from: number, to: number, seconds: number });
export type StampGap = Readonly<v.InferOutput<typeof stampGap>>;

const entry = <const T extends string, E extends v.ObjectEntries>(type: T, fields: E) =>
  object({ type: v.literal(type), ...clocks, ...fields });

const ENTRIES = {
  begin: entry('begin', {
    format: v.literal(RECORD_VERSION),
    /** A random id, so that the chains of two runs differ from the first entry on. */
    run: text,
    /** Planned duration of the observation. */
    planned_seconds: positive,
    ...session,
  }),
  /** The observer has resumed. The time between the previous entry and this one is a monitoring gap. */
  resume: entry('resume', session),
  /** Written once a minute. The observer ran since the previous entry, except for `stalled_seconds`. */
  minute: entry('minute', {
    /** Null if there was no subscription. */
    topic: v.nullable(received),
    events: v.nullable(received),
    /** Time (CLOCK_MONOTONIC) in which the observer itself was not scheduled, in periods of more than 2 s. */
    stalled_seconds: amount,
    /** Null if there was no response from /status in this minute. */
    service: v.nullable(reading),
    /** Values of the machine from the received statuses: means over the minute in percent and degrees; null if none or unavailable. */
    host: object({ cpu: v.nullable(number), memory: v.nullable(number), disk: v.nullable(number), celsius: v.nullable(number) }),
    /** Resources of the observer itself. */
    observer: object({ cpu_seconds: amount, resident_bytes: amount }),
  }),
  /** Written when a run of the service is seen for the first time. */
  service: entry('service', {
    started: text,
    version: text,
    pid: v.nullable(count),
    invocation: v.nullable(text),
    cause: oneOf(CAUSES),
    /** For display, such as "SIGKILL" or "exit status 70"; may be empty. */
    detail: text,
    /** Number of runs between the previous one and this one that are known only from NRestarts. */
    unseen: count,
  }),
  /** A change of an alert of the observed node. */
  alert: entry('alert', { by: oneOf(CHANNELS), alert_id: text, severity, metric: text, timestamp: text, resolved: boolean }),
  /** `/alerts?resolved=false` of the observed node: at the start, whenever it differs from the last list, and at the end. */
  open: entry('open', { open: list(openAlert) }),
  /** An event of the observer's clocks of more than 1 s. The `seconds` of a step are positive if the clock was set forward. */
  clock: entry('clock', { kind: oneOf(['step', 'suspend']), seconds: number }),
  /** A scan of the stored samples (/health/history) or of the rows of metrics/ between two time stamps; scans are contiguous. */
  coverage: entry('coverage', {
    of: oneOf(['stored', 'collected']),
    from: number,
    to: number,
    /** Number of samples or rows in the range. */
    count,
    /** The first one, and the last one before `to`; null if there is none. */
    first: v.nullable(number),
    last: v.nullable(number),
    longest_seconds: amount,
    /** Gaps of more than 60 s (stored) or 150 s (collected) between neighbours. */
    gaps: list(stampGap),
  }),
  /** A note for readers of the report, such as a refused subscription or a service that does not respond. */
  note: entry('note', { text }),
  /** The previous line was truncated when the observer was killed; its bytes stay in place. */
  torn: entry('torn', { bytes: positive, sha256: text }),
  /** The last entry of a run that was completed or stopped. A run may be resumed after `stopped`. */
  end: entry('end', { reason: oneOf(['complete', 'stopped']) }),
};

type Entry<T extends keyof typeof ENTRIES> = Readonly<v.InferOutput<(typeof ENTRIES)[T]>>;
export type BeginEntry = Entry<'begin'>;
export type ResumeEntry = Entry<'resume'>;
export type MinuteEntry = Entry<'minute'>;
export type ServiceEntry = Entry<'service'>;
export type AlertEntry = Entry<'alert'>;
export type OpenEntry = Entry<'open'>;
export type CoverageEntry = Entry<'coverage'>;
export type NoteEntry = Entry<'note'>;
export type EndEntry = Entry<'end'>;
export type RecordEntry = { [T in keyof typeof ENTRIES]: Entry<T> }[keyof typeof ENTRIES];

/** What makes a parsed line invalid as an entry; null if it is valid. */
export function entryProblem(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return 'it is not an entry';
  const { type } = value as { readonly type?: unknown };
  if (!Object.hasOwn(ENTRIES, type as string)) return `its type is ${show(type)}, which this version does not know`;
  const { issues } = v.safeParse(ENTRIES[type as keyof typeof ENTRIES], value, { abortEarly: true });
  if (!issues) return null;
  const [{ input, message, path = [] }] = issues;
  const name = path.findLast(({ key }) => typeof key === 'string')?.key ?? 'it';
  return `${name} is ${show(input)}, not ${message}`;
}

function show(value: unknown): string {
  const shown = value === undefined ? 'missing' : JSON.stringify(value);
  return shown.length > 40 ? `${shown.slice(0, 40)}…` : shown;
}
