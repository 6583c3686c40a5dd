import { type Alert, nodeOfAlertId, SEVERITIES, type Severity, STATUSES, type Status } from '../core/alerts/alert.ts';
import type { HealthStatus } from '../core/health-status.ts';
import type { Reading } from '../core/metrics.ts';
import { isNodeName, NODE_NAME_ALLOWED } from '../core/node-name.ts';
import { isVisible } from '../core/text.ts';
import { isoUtc } from '../core/time/time.ts';
import type { HealthStatusMessage } from './interfaces.generated.ts';

/** A validated message, or why it was refused: the field, the value found and the allowed values. */
export type Checked<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

/** Unavailable metrics are NaN. */
export function healthStatusMessage(status: HealthStatus): HealthStatusMessage {
  return {
    cpu_percent: status.cpu_percent ?? Number.NaN,
    memory_percent: status.memory_percent ?? Number.NaN,
    disk_percent: status.disk_percent ?? Number.NaN,
    temperature: status.temperature ?? Number.NaN,
    status: status.status,
    node_name: status.node_name,
    timestamp: status.timestamp,
  };
}

/**
 * Converts a received health status; never throws. NaN and infinities are unavailable (null). A percentage above 100 is kept, since
 * some monitors count each core as 100; only impossible values are refused.
 */
export function healthStatusFrom(message: unknown): Checked<HealthStatus> {
  try {
    const fields = fieldsOf<HealthStatus>(message);
    const value = {
      cpu_percent: reading('cpu_percent', fields.cpu_percent),
      memory_percent: reading('memory_percent', fields.memory_percent),
      disk_percent: reading('disk_percent', fields.disk_percent),
      temperature: reading('temperature', fields.temperature),
      status: oneOf<Status>('status', fields.status, STATUSES),
      node_name: nodeName('node_name', fields.node_name),
      timestamp: instant('timestamp', fields.timestamp),
    };
    return { ok: true, value };
  } catch (error) {
    return refusalOf(error);
  }
}

/** Converts a received alert; never throws. Value and threshold must be finite. */
export function alertFrom(message: unknown): Checked<Alert> {
  try {
    const fields = fieldsOf<Alert>(message);
    const metric = metricName('metric', fields.metric);
    const value = {
      alert_id: alertId('alert_id', fields.alert_id, metric),
      severity: oneOf<Severity>('severity', fields.severity, SEVERITIES),
      metric,
      value: finite('value', fields.value),
      threshold: finite('threshold', fields.threshold),
      timestamp: instant('timestamp', fields.timestamp),
      resolved: boolean('resolved', fields.resolved),
    };
    return { ok: true, value };
  } catch (error) {
    return refusalOf(error);
  }
}

const MAX_ALERT_ID = 512;
/** Bound for percent, degrees and seconds (31 years); larger values indicate wrongly decoded data. */
const MAX_QUANTITY = 1e9;
const MAX_DISK_METRIC = 256;
const METRIC = /^[A-Za-z0-9_./-]{1,64}$/;
/** ISO 8601 with a zone; fractions to nanoseconds. */
const INSTANT = /^(\d{4})-(\d{2})-(\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;
const END_OF_YEARS_MS = Date.UTC(10_000, 0);

class Refused extends Error {}

/** The fields of a message, none of which can be trusted to be present. */
function fieldsOf<T>(message: unknown): Readonly<Record<keyof T, unknown>> {
  if (typeof message !== 'object' || message === null) throw new Refused(`found ${shown(message)}; allowed: a message`);
  return message as Readonly<Record<keyof T, unknown>>;
}

/** Any other error was thrown by the message itself, whose fields may be accessors. */
function refusalOf(error: unknown): { readonly ok: false; readonly reason: string } {
  return { ok: false, reason: error instanceof Refused ? error.message : 'the message cannot be read' };
}

/** A value for a log line: of bounded length, and without calling methods of the value. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}...` : value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (value === undefined || value === null) return 'nothing';
  return `a value of type ${typeof value}`;
}

function refuse(name: string, value: unknown, allowed: string): never {
  throw new Refused(`${name} is ${shown(value)}; allowed: ${allowed}`);
}

function reading(name: string, value: unknown): Reading {
  if (typeof value !== 'number') return refuse(name, value, 'a number');
  return Number.isFinite(value) ? finite(name, value) : null;
}

function finite(name: string, value: unknown): number {
  if (typeof value !== 'number' || !(Math.abs(value) <= MAX_QUANTITY)) {
    return refuse(name, value, `a number from ${-MAX_QUANTITY} to ${MAX_QUANTITY}`);
  }
  return value === 0 ? 0 : value; // -0 cannot be represented in JSON.
}

function boolean(name: string, value: unknown): boolean {
  return typeof value === 'boolean' ? value : refuse(name, value, 'true or false');
}

function oneOf<T extends string>(name: string, value: unknown, allowed: readonly T[]): T {
  return allowed.find((one) => one === value) ?? refuse(name, value, `one of ${allowed.join(', ')}`);
}

function matching(name: string, value: unknown, pattern: RegExp, allowed: string): string {
  return typeof value === 'string' && pattern.test(value) ? value : refuse(name, value, allowed);
}

function printable(name: string, value: unknown, max: number): string {
  const fits = typeof value === 'string' && value.length <= max && isVisible(value);
  return fits ? value : refuse(name, value, `1 to ${max} printable characters, not all of them spaces`);
}

function nodeName(name: string, value: unknown): string {
  return typeof value === 'string' && isNodeName(value) ? value : refuse(name, value, NODE_NAME_ALLOWED);
}

function metricName(name: string, value: unknown): string {
  if (typeof value === 'string' && value.startsWith('disk:/')) return printable(name, value, MAX_DISK_METRIC);
  return matching(name, value, METRIC, 'a name of 1 to 64 letters, digits, _ . / or -, or disk: and a path');
}

/** `<node_name>/<metric>/<unique id>` with the alert's own metric; the node's name may contain slashes. */
function alertId(name: string, value: unknown, metric: string): string {
  const id = printable(name, value, MAX_ALERT_ID);
  const end = id.lastIndexOf('/');
  const isOfMetric = id.slice(0, end).endsWith(`/${metric}`) && end < id.length - 1;
  if (!isOfMetric) return refuse(name, value, `<node_name>/${metric}/<unique id>`);
  // An id whose metric contains slashes would be ambiguous.
  const areNames = isNodeName(id.slice(0, end - metric.length - 1)) && isNodeName(nodeOfAlertId(id));
  return areNames ? id : refuse(name, value, `a node_name of ${NODE_NAME_ALLOWED}`);
}

/** A time of isoUtc on a day that every month has, from 2000 to 2099. */
const OWN_INSTANT = /^20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

/** In the format of isoUtc: milliseconds, UTC. */
function instant(name: string, value: unknown): string {
  // The common case, in which no conversion is needed.
  if (typeof value === 'string' && OWN_INSTANT.test(value)) return value;
  const parts = typeof value === 'string' && value.length <= 40 ? INSTANT.exec(value) : null;
  const ms = parts ? Date.parse(parts[0]) : Number.NaN;
  // Date.parse accepts February 30 as March 2.
  const calendar =
    parts !== null && new Date(Date.UTC(Number(parts[1]), Number(parts[2]) - 1, Number(parts[3]))).getUTCDate() === Number(parts[3]);
  if (!calendar || !(ms >= 0 && ms < END_OF_YEARS_MS)) {
    return refuse(name, value, 'a time in ISO 8601 with Z or an offset, from 1970 to 9999, such as 2026-03-04T05:06:07.089Z');
  }
  return isoUtc(ms);
}
