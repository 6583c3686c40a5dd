import { SEVERITIES } from '../../src/core/alert.ts';
import { CAUSES, CHANNELS, type RecordEntry } from './entries.ts';

/** Throws with where it is wrong and how. */
type Check = (value: unknown, at: string) => void;
type Fields = Readonly<Record<string, Check>>;

const show = (value: unknown): string => {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 40)}…` : text;
};

function wrong(value: unknown, at: string, due: string): never {
  throw new Error(`${at} is ${show(value)}, not ${due}`);
}

const number: Check = (value, at) => {
  if (typeof value !== 'number') wrong(value, at, 'a number');
};
const count: Check = (value, at) => {
  if (!Number.isSafeInteger(value) || (value as number) < 0) wrong(value, at, 'a count');
};
const integer: Check = (value, at) => {
  if (!Number.isSafeInteger(value)) wrong(value, at, 'a whole number');
};
const positive: Check = (value, at) => {
  if (typeof value !== 'number' || value <= 0) wrong(value, at, 'above 0');
};
/** Not less than 0. */
const amount: Check = (value, at) => {
  if (typeof value !== 'number' || value < 0) wrong(value, at, '0 or more');
};
const text: Check = (value, at) => {
  if (typeof value !== 'string') wrong(value, at, 'a text');
};
const truth: Check = (value, at) => {
  if (typeof value !== 'boolean') wrong(value, at, 'true or false');
};
const nullable =
  (check: Check): Check =>
  (value, at) => {
    if (value !== null) check(value, at);
  };
const oneOf =
  (values: readonly unknown[]): Check =>
  (value, at) => {
    if (!values.includes(value)) wrong(value, at, `one of ${values.join(', ')}`);
  };
const list =
  (check: Check): Check =>
  (value, at) => {
    if (!Array.isArray(value)) wrong(value, at, 'a list');
    for (let i = 0; i < value.length; i += 1) check(value[i], at);
  };
/** Members beside these are let be. */
const object = (fields: Fields): Check => {
  const named = Object.entries(fields);
  return (value, at) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) wrong(value, at, 'an object');
    for (const [name, check] of named) check((value as Readonly<Record<string, unknown>>)[name], name);
  };
};

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
const watching: Fields = {
  boot_id: text,
  target: object({
    kind: oneOf(['unit', 'started', 'url']),
    url: text,
    unit: nullable(text),
    node_name: text,
    version: text,
    configured_hertz: positive,
    service_transport: transport,
    data_folder: nullable(text),
  }),
  watcher: object({ version: text, transport, reason: text, machine: nullable(machine) }),
};
const received = nullable((value, at) => {
  object({ first: nullable(integer), steps: list(integer), slowest_ms: nullable(number), fastest_ms: nullable(number) })(value, at);
  const { first, steps } = value as { readonly first: number | null; readonly steps: readonly number[] };
  if (first === null && steps.length > 0) wrong(steps.length, 'steps', 'empty, as first is null');
});
const service = object({
  started: text,
  samples: count,
  missed: count,
  published: nullable(count),
  samples_lost: count,
  resident_bytes: list(amount),
  cpu_seconds: amount,
  cpu_from: oneOf(['group', 'process', 'status']),
  group: nullable(object({ memory_bytes: amount, anon_bytes: amount, restarts: nullable(count) })),
  open_files: nullable(count),
  open_alerts: object(Object.fromEntries(SEVERITIES.map((severity) => [severity, count]))),
  configured_hertz: positive,
  database_bytes: amount,
});
const severity = oneOf(SEVERITIES);

const FIELDS: Readonly<Record<RecordEntry['type'], Fields>> = {
  begin: { format: integer, run: text, planned_seconds: positive, ...watching },
  resume: watching,
  minute: {
    topic: received,
    events: received,
    stalled_seconds: amount,
    service: nullable(service),
    host: object({ cpu: nullable(number), memory: nullable(number), disk: nullable(number), celsius: nullable(number) }),
    watcher: object({ cpu_seconds: amount, resident_bytes: amount }),
  },
  service: {
    started: text,
    version: text,
    pid: nullable(count),
    invocation: nullable(text),
    cause: oneOf(CAUSES),
    detail: text,
    unseen: count,
  },
  alert: { by: oneOf(CHANNELS), alert_id: text, severity, metric: text, timestamp: text, resolved: truth },
  open: { open: list(object({ alert_id: text, severity, metric: text })) },
  clock: { kind: oneOf(['step', 'suspend']), seconds: number },
  holding: {
    of: oneOf(['stored', 'collected']),
    from: number,
    to: number,
    count,
    first: nullable(number),
    last: nullable(number),
    longest_seconds: amount,
    gaps: list(object({ from: number, to: number, seconds: number })),
  },
  note: { text },
  torn: { bytes: positive, sha256: text },
  end: { reason: oneOf(['complete', 'stopped']) },
};

const checks = new Map(
  Object.entries(FIELDS).map(([type, fields]) => [type, object({ boot: number, mono: number, wall: number, ...fields })]),
);

/** What is wrong with what was parsed from a line, as an entry; null: nothing. */
export function wrongInEntry(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) return 'it is no entry';
  const { type } = value as { readonly type?: unknown };
  const check = checks.get(type as string);
  if (!check) return `its type is ${show(type)}, which this version does not know`;
  try {
    check(value, 'it');
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
