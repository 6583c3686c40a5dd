import { isIP } from 'node:net';
import * as v from 'valibot';
import { isVisible } from '../core/text.ts';
import { CRON_ALLOWED, isTimeZone, scheduleProblem } from './cron.ts';

/** Metadata of a configuration key beyond its type, range and default. */
export type KeyNotes = {
  readonly unit?: string;
  /** Whether `systemctl reload` (SIGHUP) applies it. */
  readonly reload?: boolean;
  /** Description of the default if it is not a fixed value. */
  readonly defaultIs?: string;
  /** Value of a key that is not set by default, as the default file shows it. */
  readonly example?: string;
  /** Whether the value itself grants access to something. It is then neither shown nor part of a backup. */
  readonly secret?: boolean;
};

const about = <T>(description: string, notes: KeyNotes = {}): v.MetadataAction<T, KeyNotes & { description: string }> =>
  v.metadata({ description, ...notes });

export const positive = (max: number) => v.pipe(v.number(), v.finite(), v.gtValue(0), v.maxValue(max));
export const between = (min: number, max: number) => v.pipe(v.number(), v.finite(), v.minValue(min), v.maxValue(max));
export const integer = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max));
/** Texts appear in logs, in alerts and on the graph. A character that is invisible there was entered or copied by mistake. */
export const visible = v.rawCheck<string>(({ addIssue, dataset }) => {
  if (dataset.typed && dataset.value !== '' && !isVisible(dataset.value))
    addIssue({ message: 'without control and invisible characters, and not only spaces' });
});
export const text = v.pipe(v.string(), v.minLength(1), v.maxLength(4096), visible);

/** A key with a default. */
export const key = <S extends v.GenericSchema>(schema: S, fallback: v.InferInput<S>, description: string, notes?: KeyNotes) =>
  v.optional(v.pipe(schema, about<v.InferOutput<S>>(description, notes)), fallback);

/** A key that is not set by default. `defaultIs` describes what then applies. */
export const unset = <S extends v.GenericSchema>(schema: S, defaultIs: string, description: string, notes?: KeyNotes) =>
  v.optional(v.nullable(v.pipe(schema, about<v.InferOutput<S>>(description, { ...notes, defaultIs }))), null);

/** A section of keys. It may be missing or empty; an unknown key in it is an error. */
export const section = <T extends v.ObjectEntries>(entries: T) => v.nullish(v.strictObject(entries), {} as never);

/** `false`: `off` in YAML 1.1. */
export const isOff = (value: unknown): boolean => value === false || (typeof value === 'string' && /^off$/i.test(value));
const off = v.pipe(
  v.custom<'off' | false>(isOff),
  v.transform(() => 'off' as const),
);

/** The keys of a metric, or `off` instead of them. parse.ts checks that warning is below critical. */
export function threshold(what: string, unit: string, [warning, critical]: Limits, [min, max]: Limits, example?: { raiseAfter: string }) {
  const limit = (severity: string, fallback: number) =>
    key(between(min, max), fallback, `Raise ${severity} at or above this ${what}.`, { unit, reload: true });
  const delay = (name: string, description: string, example?: string) =>
    unset(between(0, 3600), `alerts.${name}`, description, { unit: 's', reload: true, ...(example && { example }) });
  const keys = v.strictObject({
    warning: limit('WARNING', warning),
    critical: limit('CRITICAL', critical),
    raise_after_seconds: delay('raise_after_seconds', 'Raise an alert of this metric only after this long.', example?.raiseAfter),
    clear_after_seconds: delay('clear_after_seconds', 'Lower or resolve an alert of this metric only after this long.'),
  });
  return v.nullish(
    v.lazy<typeof keys | typeof off>((value) => (isOff(value) ? off : keys)),
    {},
  );
}
type Limits = readonly [number, number];

/** An IP address, optionally with the prefix length of a network. */
function isAddressOrNetwork(entry: string): boolean {
  const [address = '', prefix, ...more] = entry.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return prefix === undefined || Number(prefix) <= (version === 4 ? 32 : 128);
}

export const addressOrNetwork = v.pipe(
  v.string(),
  v.regex(/^[0-9A-Fa-f:.]{2,45}(\/\d{1,3})?$/, 'IP addresses such as 192.168.1.20 or networks such as 192.168.1.0/24'),
  v.check(isAddressOrNetwork),
);

/** The schedule of a job: a cron expression, or off. */
export const schedule = (what: string, cron: string) =>
  key(
    v.pipe(
      text,
      v.regex(/^\S/, CRON_ALLOWED),
      v.rawCheck(({ addIssue, dataset }) => {
        const problem = dataset.typed ? scheduleProblem(dataset.value) : null;
        if (problem !== null) addIssue({ message: problem });
      }),
    ),
    cron,
    `When ${what}.`,
    { reload: true },
  );

export const timeZone = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_+/-]{1,64}$/, 'a time zone such as Europe/Berlin'), v.check(isTimeZone));
