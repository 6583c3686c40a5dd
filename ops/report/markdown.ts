import { SEVERITIES } from '../../src/core/alert.ts';
import { METRICS, type Metric } from '../../src/core/metrics.ts';
import type { Spread } from './node-figures.ts';
import type { ReportDocument } from './report.ts';

/** Longer lists are cut; report.json has them whole. */
const LISTED = 50;

const percent = (share: number | null): string => (share === null ? 'unknown' : `${(100 * share).toFixed(3)} %`);
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
const moment = (iso: string): string => iso.replace(/\.\d+Z$/, 'Z');

export function duration(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds * 10) / 10} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(1)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} d`;
}

/** Name and value of every figure, for people. */
export function figures(report: ReportDocument): (readonly [string, string])[] {
  const { alerts, collection, cpu_percent_of_one_core: cpu, memory_bytes: memory, samples, service } = report;
  const what = collection.slot_seconds === 60 ? 'Minutes' : `Slots of ${collection.slot_seconds} s`;
  const reboots = service.restarts.filter(({ kind }) => kind === 'reboot').length;
  const counts = (by: Readonly<Record<string, number>>): string => SEVERITIES.map((severity) => `${by[severity]} ${severity}`).join(', ');
  const open = Object.fromEntries(
    SEVERITIES.map((severity) => [severity, alerts.open.filter((episode) => episode.severity === severity).length]),
  );
  return [
    ['Period', `${moment(report.period.from)} to ${moment(report.period.to)} (${report.period.hours} h)`],
    ['Rows', `${collection.rows} in ${collection.files} files, from ${moment(collection.first_row)} to ${moment(collection.last_row)}`],
    [`${what} with a row`, `${collection.slots_with_row} of ${collection.slots}`],
    [`${what} with an answer`, `${collection.slots_answered} of ${collection.slots} (${percent(collection.answered_share)})`],
    ['Restarts of the service', `${service.restarts.length}, ${reboots} of them with the machine`],
    ['Samples', `${samples.received} of ${samples.expected} expected (${percent(samples.share)}), ${samples.missed} missed`],
    ['Longest gap between rows', duration(collection.longest_gap_seconds)],
    ['Clock steps', `${collection.clock_steps.length}`],
    [
      'Memory of the service',
      memory ? `median ${megabytes(memory.median)}, ${megabytes(memory.min)} to ${megabytes(memory.max)}` : 'unknown',
    ],
    ['CPU of the service', cpu === null ? 'unknown' : `${cpu.toFixed(3)} % of one core on average`],
    [
      'Host on average',
      report.nodes
        .filter(({ local }) => local)
        .map(averages)
        .join('; ') || 'unknown',
    ],
    ['Alert episodes', `${counts(alerts.episodes)} (${alerts.changes} changes)`],
    ['Open at the end', counts(open)],
  ];
}

function averages({ metrics }: ReportDocument['nodes'][number]): string {
  const of = (metric: Metric, unit: string): string => (metrics[metric] === null ? 'unavailable' : `${metrics[metric].mean} ${unit}`);
  return `CPU ${of('cpu_percent', '%')}, memory ${of('memory_percent', '%')}, disk ${of('disk_percent', '%')}, temperature ${of('temperature', '°C')}`;
}

/** The report as Markdown. */
export function markdown(report: ReportDocument): string {
  const { alerts, collection, incomplete, made, note, service } = report;
  return [
    `# Health of ${service.node_name}, ${moment(report.period.from)} to ${moment(report.period.to)}`,
    `${note}\n\nMade ${moment(made)}, edge-health ${service.version ?? '(version unknown)'}.`,
    incomplete.length === 0 ? '' : `**The data is incomplete:** ${incomplete.join('; ')}.`,
    table(['figure', 'value'], figures(report)),
    section(
      'Hosts',
      table(
        ['node', 'rows', 'silent', ...METRICS],
        report.nodes.map(({ metrics, node_name, rows, silent_rows }) => [
          node_name,
          String(rows),
          String(silent_rows),
          ...METRICS.map((metric) => spread(metrics[metric])),
        ]),
      ),
      'Mean (least to greatest) of the last sample of each row; percent, and degrees Celsius.',
    ),
    section(
      'Restarts',
      table(
        ['seen', 'started', 'kind', 'version'],
        service.restarts.map(({ kind, seen, started, version }) => [moment(seen), moment(started), kind, version ?? '']),
      ),
    ),
    section(
      'Gaps',
      table(
        ['from', 'to', 'length', 'kind'],
        collection.gaps.map(({ from, kind, seconds, to }) => [moment(from), moment(to), duration(seconds), kind]),
      ),
      'Longer than five minutes without a row.',
    ),
    section('Clock steps', moments(collection.clock_steps)),
    section('Sleep', moments(collection.sleeps)),
    section(
      'No answer',
      table(
        ['reason', 'rows'],
        collection.unanswered.map(({ reason, rows }) => [reason, String(rows)]),
      ),
    ),
    section(
      'Open alerts',
      table(
        ['severity', 'node', 'metric', 'began', 'alert_id'],
        alerts.open.map(({ alert_id, began, metric, node, severity }) => [severity, node, metric, began ? moment(began) : '', alert_id]),
      ),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
    .concat('\n');
}

function spread(of: Spread | null): string {
  return of === null ? 'unavailable' : `${of.mean} (${of.min} to ${of.max})`;
}

function moments(list: readonly { readonly at: string; readonly seconds: number }[]): string {
  return table(
    ['at', 'seconds'],
    list.map(({ at, seconds }) => [moment(at), String(seconds)]),
  );
}

/** Empty where there is nothing to list. */
function section(title: string, content: string, about = ''): string {
  return content === '' ? '' : [`## ${title}`, about, content].filter((part) => part !== '').join('\n\n');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const more = rows.length > LISTED ? `\n\n${rows.length - LISTED} more are in report.json.` : '';
  return [line(head), line(head.map(() => '---')), ...rows.slice(0, LISTED).map(line)].join('\n') + more;
}
