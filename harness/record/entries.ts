/**
 * The entries of record.ndjson, one JSON object per line: one schema each, of which the types are made and by which a record is checked.
 * Each line ends with `"n"`, its number from 0, and `"hash"` (chain.ts).
 */
import * as v from 'valibot';
import { SEVERITIES } from '../../src/core/alerts/alert.ts';

export const RECORD_FILE = 'record.ndjson';
export const RECORD_VERSION = 1;

/** The two ways on which statuses and alerts are received: ROS 2 topics, and the event stream of REST. */
export const CHANNELS = ['topic', 'events'] as const;
export type Channel = (typeof CHANNELS)[number];

/** Why the previous run ended. `first`: there was none; `stopped`: on request, by systemctl for example; `upgrade`: to another version. */
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

// The message of each schema is what it expects.
const number = v.number('a number');
const amount = v.pipe(v.number('0 or more'), v.minValue(0, '0 or more'));
const positive = v.pipe(v.number('above 0'), v.gtValue(0, 'above 0'));
const integer = v.pipe(v.number('a whole number'), v.safeInteger('a whole number'));
const count = v.pipe(v.number('a count'), v.safeInteger('a count'), v.minValue(0, 'a count'));
const text = v.string('a text');
const boolean = v.boolean('true or false');
const oneOf = <const T extends readonly string[]>(values: T) => v.picklist(values, `one of ${values.join(', ')}`);
const list = <T extends v.GenericSchema>(item: T) => v.pipe(v.array(item, 'a list'), v.readonly());
/** Long lists: valibot makes an object for each item. */
const integers = v.pipe(
  v.custom<readonly number[]>(Array.isArray, 'a list'),
  v.rawCheck(({ addIssue, dataset }) => {
    const wrong = dataset.typed ? dataset.value.findIndex((value) => !Number.isSafeInteger(value)) : -1;
    if (wrong >= 0) addIssue({ message: 'a whole number', input: (dataset.value as readonly unknown[])[wrong] });
  }),
);
/** Further members are allowed. */
const object = <T extends v.ObjectEntries>(entries: T) =>
  v.object(entries, ({ path }) => (path ? expected(entries[path[0].key as string]) : 'an object'));

function expected(schema: object | undefined): string {
  const { message, wrapped } = schema as { readonly message?: unknown; readonly wrapped?: object };
  return wrapped ? expected(wrapped) : typeof message === 'string' ? message : 'an object';
}

const clocks = {
  /** Seconds of CLOCK_BOOTTIME, which goes on during a suspend. */
  boot: number,
  /** Seconds of CLOCK_MONOTONIC, which does not. */
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

/** What is observed. */
const target = object({
  /** `unit`: of systemd on this machine; `started`: by the harness itself, in a checkout; `url`: by REST and the graph alone. */
  kind: oneOf(['unit', 'started', 'url']),
  url: text,
  unit: v.nullable(text),
  node_name: text,
  version: text,
  configured_hertz: positive,
  service_transport: transport,
  /** `storage.path` of the service; null: not readable from here. */
  data_folder: v.nullable(text),
});
export type Target = Readonly<v.InferOutput<typeof target>>;

const observer = object({
  version: text,
  transport,
  /** Why this transport, for people. */
  reason: text,
  machine: v.nullable(machine),
});
export type Observer = Readonly<v.InferOutput<typeof observer>>;

const session = { boot_id: text, target, observer };

/** Statuses of the observed node received since the last `minute`, `begin` or `resume`, in the order of arrival. */
const received = v.pipe(
  object({
    /** Time stamp of the first one, in ms since the epoch; null: none. */
    first: v.nullable(integer),
    /** From each time stamp to the next, in ms; negative if out of order, 0 for the same again. One less than statuses. */
    steps: integers,
    /** The longest time from time stamp to arrival, in ms by this machine's clock. */
    slowest_ms: v.nullable(number),
    /** The shortest; far from 0 if the clock of the observed machine differs. */
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

/** The last reading of /status, /proc and the control group in a minute. Null: not available. */
const reading = object({
  /** When the process started, by /status; distinguishes the runs of the service. */
  started: text,
  /** Counters of that run. */
  samples: count,
  missed: count,
  /** Health statuses handed to the ROS 2 graph; null: not on the graph, or not counted by this version. */
  published: v.nullable(count),
  samples_lost: count,
  /** Resident memory of the main process, at every reading since the last entry, oldest first. */
  resident_bytes: list(amount),
  /** CPU time of the run up to now: of its control group if known, else of the process. */
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
    /** Random; makes the chains of two runs different from the first entry on. */
    run: text,
    /** Duration to be observed. */
    planned_seconds: positive,
    ...session,
  }),
  /** The observer runs again. Between the previous entry and this one is a monitoring gap. */
  resume: entry('resume', session),
  /** Once a minute. The observer ran since the previous entry, except for `stalled_seconds`. */
  minute: entry('minute', {
    /** Null: there was no subscription. */
    topic: v.nullable(received),
    events: v.nullable(received),
    /** Time (CLOCK_MONOTONIC) in which the observer itself did not get to run, in pieces of more than 2 s. */
    stalled_seconds: amount,
    /** Null: /status did not answer in this minute. */
    service: v.nullable(reading),
    /** Of the machine, by the received statuses: means over the minute in percent and degrees; null: none, or unavailable. */
    host: object({ cpu: v.nullable(number), memory: v.nullable(number), disk: v.nullable(number), celsius: v.nullable(number) }),
    /** Of the observer itself. */
    observer: object({ cpu_seconds: amount, resident_bytes: amount }),
  }),
  /** A run of the service was seen for the first time. */
  service: entry('service', {
    started: text,
    version: text,
    pid: v.nullable(count),
    invocation: v.nullable(text),
    cause: oneOf(CAUSES),
    /** For people, such as "SIGKILL" or "exit status 70"; may be empty. */
    detail: text,
    /** Number of runs between the previous one and this one that are known by NRestarts alone. */
    unseen: count,
  }),
  /** A change of an alert of the observed node. */
  alert: entry('alert', { by: oneOf(CHANNELS), alert_id: text, severity, metric: text, timestamp: text, resolved: boolean }),
  /** `/alerts?resolved=false` of the observed node: at the begin, whenever it differs from the last time, and at the end. */
  open: entry('open', { open: list(openAlert) }),
  /** As shown by the observer's clocks, beyond 1 s. The `seconds` of a step are positive when the clock was put forward. */
  clock: entry('clock', { kind: oneOf(['step', 'suspend']), seconds: number }),
  /** A scan of the stored samples (/health/history) or of the rows of metrics/, between two time stamps; scans follow each other. */
  coverage: entry('coverage', {
    of: oneOf(['stored', 'collected']),
    from: number,
    to: number,
    /** Samples or rows in it. */
    count,
    /** The first one, and the last one before `to`; null: none. */
    first: v.nullable(number),
    last: v.nullable(number),
    longest_seconds: amount,
    /** Between neighbours that are more than 60 s (stored) or 150 s (collected) apart. */
    gaps: list(stampGap),
  }),
  /** For readers of the report: a subscription that was refused, a service that does not answer. */
  note: entry('note', { text }),
  /** The line before was cut off when the observer was killed; its bytes stay where they are. */
  torn: entry('torn', { bytes: positive, sha256: text }),
  /** The last entry of a run that reached its end, or was stopped. After `stopped` a run may be resumed. */
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

/** What is wrong with a parsed line as an entry; null: nothing. */
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
