import * as v from 'valibot';
import type { TimeRange } from '../core/ports.ts';
import { HOUR_MS } from '../core/time/time.ts';
import { type ApiPath, EARLIEST_MS, type Parameter, parameters, valueType } from './api/query-schema.ts';
import { Problem } from './problem.ts';

/** Validated parameters by name; absent ones are undefined unless they have a default. */
export type Query = Readonly<Record<string, unknown>>;

/** Length of the longest cursor. */
const MAX_VALUE_LENGTH = 2200;

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw new Problem('malformed_url', `"${text.slice(0, 60)}" has a malformed percent-encoding`);
  }
}

/** Converts text to the type of a parameter; text that cannot be converted is returned unchanged, and the schema refuses it. */
function convert(parameter: Parameter, text: string): unknown {
  const type = valueType(parameter);
  if (type === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  return type === 'array' ? text.split(',') : text;
}

/** Parses and validates the query of a path. Throws a Problem that names the parameter and what is allowed. */
export function parseQuery(path: ApiPath, search: string): Query {
  const known: Readonly<Record<string, Parameter>> = parameters[path];
  const given = new Map<string, string>();
  for (const pair of search.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1));
    const parameter = Object.hasOwn(known, name) ? known[name] : undefined;
    const names = Object.keys(known);
    if (!parameter) {
      const allowed = names.length > 0 ? names.join(', ') : 'no parameters';
      throw new Problem('unknown_parameter', `${path} has no parameter "${name.slice(0, 60)}"; allowed: ${allowed}`, {
        parameter: name.slice(0, 60),
        allowed,
      });
    }
    if (given.has(name))
      throw new Problem('invalid_parameter', `${name} is given twice; allowed: once`, { parameter: name, allowed: 'once' });
    given.set(name, value);
  }
  const query: Record<string, unknown> = {};
  for (const [name, parameter] of Object.entries(known)) {
    const { allowed, schema } = parameter;
    const text = given.get(name);
    if (text === undefined) {
      // An absent parameter is undefined, or the default of its schema.
      if (schema.type === 'optional') query[name] = v.parse(schema, undefined);
      continue;
    }
    const result = text.length > MAX_VALUE_LENGTH ? { success: false as const } : v.safeParse(schema, convert(parameter, text));
    if (!result.success) throw invalid(name, text, allowed);
    query[name] = result.output;
  }
  return query;
}

export function invalid(name: string, found: string, allowed: string): Problem {
  return new Problem('invalid_parameter', `${name} is "${found.slice(0, 60)}"; allowed: ${allowed}`, { parameter: name, allowed });
}

/** The time range given by from, to and hours; null if none of them is given. */
export function givenRange(query: Query, nowMs: number, defaultHours: number): TimeRange | null {
  const { from, to, hours } = query as { from?: string; to?: string; hours?: number };
  if (from === undefined && to === undefined && hours === undefined) return null;
  if (from !== undefined && hours !== undefined) throw invalid('hours', String(hours), 'not together with from');
  // The end is exclusive; one more millisecond includes a sample taken in the current one.
  const toMs = to === undefined ? nowMs + 1 : Date.parse(to);
  const fromMs = from === undefined ? Math.max(EARLIEST_MS, toMs - Math.round((hours ?? defaultHours) * HOUR_MS)) : Date.parse(from);
  if (fromMs >= toMs) {
    if (from !== undefined) throw invalid('from', from, to === undefined ? 'a time before now' : `a time before to (${to})`);
    throw to !== undefined && toMs <= EARLIEST_MS ? invalid('to', to, 'a later time') : invalid('hours', String(hours), 'a longer time');
  }
  return { fromMs, toMs };
}

export function rangeOf(query: Query, nowMs: number, defaultHours: number): TimeRange {
  return givenRange(query, nowMs, defaultHours) ?? { fromMs: nowMs + 1 - defaultHours * HOUR_MS, toMs: nowMs + 1 };
}

const STEP_UNIT_MS = { s: 1000, m: 60_000, h: HOUR_MS, d: 24 * HOUR_MS } as const;

/** Milliseconds of a step such as `5m`. */
export function stepMs(step: string): number {
  return Number(step.slice(0, -1)) * STEP_UNIT_MS[step.at(-1) as keyof typeof STEP_UNIT_MS];
}

/** Encodes a position in a listing. The cursor is opaque to clients. */
export function encodeCursor(timestampMs: number, key: string): string {
  return Buffer.from(`${timestampMs} ${key}`).toString('base64url');
}

export function decodeCursor(cursor: string): { timestampMs: number; key: string } {
  const text = Buffer.from(cursor, 'base64url').toString();
  const match = /^(-?\d{1,16}) (.{0,600})$/s.exec(text);
  if (!match) throw invalid('cursor', cursor, 'the cursor of a Link header');
  return { timestampMs: Number(match[1]), key: match[2] ?? '' };
}
