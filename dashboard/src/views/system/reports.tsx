import type { VNode } from 'preact';
import { duration } from '../../format.ts';
import { messages } from '../../messages/messages.ts';
import type { Api } from '../../model/api.ts';
import type { Connection } from '../../model/connection.ts';
import { STATUS_ICONS } from '../../page/icons.tsx';
import { Failure, type Requested, useRequest } from '../../page/request.tsx';
import { Time } from '../../page/time.tsx';
import type { ReliabilityReports, Report, Status } from '../../types.ts';
import { Card } from './facts.tsx';

const RELOAD_MS = 60_000;
const STATUS_OF: Readonly<Record<Report['verdict'], Status>> = { PASS: 'OK', FAIL: 'CRITICAL', INCOMPLETE: 'UNKNOWN' };
/** A run writes its record once a minute; if the record is older than this, the harness is not running. */
const STALLED_MS = 180_000;

const COMMANDS = {
  package: { start: 'sudo edge-health harness start', resume: 'sudo systemctl start edge-health-harness' },
  checkout: { start: 'npm run harness:7day', resume: 'npm run harness -- --out DIR' },
};

interface ReportsProps {
  readonly api: Api;
  /** False: the service runs from a checkout. */
  readonly isInstalled: boolean;
  readonly isOutdated: boolean;
  readonly nowMs: number;
}

/** The progress of a reliability test, and the reports, which open in a new tab. */
export function ReportsCard({ connection, ...props }: ReportsProps & { connection: Connection }): VNode {
  const { api, nowMs } = props;
  const loaded = useRequest((signal) => api.getJson<ReliabilityReports>('reports', signal), connection, [Math.floor(nowMs / RELOAD_MS)]);
  return <Reports {...props} loaded={loaded} />;
}

export function Reports({ api, isInstalled, isOutdated, loaded, nowMs }: ReportsProps & { loaded: Requested<ReliabilityReports> }): VNode {
  const reports = loaded.value;
  const text = messages.system.reports;
  const commands = COMMANDS[isInstalled === false ? 'checkout' : 'package'];
  return (
    <Card name="reports" title={text.title} isOutdated={isOutdated && reports !== null}>
      <p class="muted">{text.about}</p>
      {reports?.running && <Progress running={reports.running} nowMs={nowMs} resume={commands.resume} />}
      <Failure of={loaded} />
      {reports === null && loaded.problem === null && <p class="muted">{messages.shell.loading}</p>}
      {reports !== null && reports.count === 0 && !reports.running && <p>{text.none(commands.start)}</p>}
      <ul>
        {reports?.data.map((report) => (
          <li key={report.name}>
            <Verdict report={report} />
            <Opener api={api} name={report.name}>
              {text.ofNode(report.node_name)}
            </Opener>
            <span class="note">
              <Time ms={Date.parse(report.begun)} nowMs={nowMs} /> ·{' '}
              {duration((Date.parse(report.ended) - Date.parse(report.begun)) / 1000)} · {report.observed ? text.observed : text.collected}
            </span>
            <span class="note">{report.statement}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Progress({
  nowMs,
  resume,
  running,
}: {
  nowMs: number;
  resume: string;
  running: NonNullable<ReliabilityReports['running']>;
}): VNode {
  const text = messages.system.reports;
  const { begun, planned_seconds: planned, recorded } = running;
  const passed = Math.max(0, (nowMs - Date.parse(begun)) / 1000);
  const shown = planned === null ? text.runs(duration(passed)) : text.runsOf(duration(Math.min(passed, planned)), duration(planned));
  const isStalled = recorded !== null && nowMs - Date.parse(recorded) > STALLED_MS;
  return (
    <div class="running">
      {isStalled && <p class="stopped">{text.stalled(resume)}</p>}
      <p>{shown}</p>
      {planned !== null && <progress max={planned} value={Math.min(passed, planned)} aria-label={shown} />}
    </div>
  );
}

function Verdict({ report: { verdict } }: { report: Report }): VNode {
  const status = STATUS_OF[verdict];
  const Icon = STATUS_ICONS[status];
  return (
    <span class={`state ${status.toLowerCase()}`}>
      <Icon />
      {messages.system.reports.verdicts[verdict]}
    </span>
  );
}

/** A link; if the API needs a token, which a link cannot send, a button that saves the report. */
function Opener({ api, children, name }: { api: Api; children: string; name: string }): VNode {
  const path = `reports?name=${encodeURIComponent(name)}`;
  if (api.token === null)
    return (
      <a href={path} target="_blank" rel="noopener">
        {children}
      </a>
    );
  const save = async (): Promise<void> => {
    const url = URL.createObjectURL(await api.getBlob(path));
    const link = document.createElement('a');
    link.href = url;
    link.download = `${name}.html`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <button type="button" onClick={() => void save()}>
      {messages.system.reports.save(children)}
    </button>
  );
}
