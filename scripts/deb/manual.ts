import { readFileSync } from 'node:fs';
import { describeKeys, type KeyDescription } from '../../src/config/describe.ts';

const MAX_LINE = 80;

/** The day of the newest entry of a Debian changelog, in the format of manual pages. */
export function changelogDay(changelog = 'debian/changelog'): string {
  const stamp = /^ -- .*> {2}(.+)$/m.exec(readFileSync(changelog, 'utf8'))?.[1];
  if (stamp === undefined) throw new Error(`${changelog} has no entry`);
  return new Date(stamp).toISOString().slice(0, 10);
}

/** Escapes a text for roff, except for a dot or an apostrophe at the beginning of a line. */
function plain(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/[^\x20-\x7e\n]/gu, (character) => `\\[u${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}]`);
}

/** Wraps a text, so that the lines of the source have a moderate length. */
function lines(text: string): string {
  const made: string[] = [];
  for (const word of text.split(' ')) {
    const line = made.at(-1);
    if (line !== undefined && line.length + word.length < MAX_LINE) made[made.length - 1] = `${line} ${word}`;
    else made.push(/^[.']/.test(word) ? `\\&${word}` : word);
  }
  return made.join('\n');
}

const bold = (text: string): string => `\\fB${plain(text)}\\fR`;
const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}`;

function standard(key: KeyDescription): string {
  if (key.defaultIs !== null) return key.defaultIs;
  return Array.isArray(key.default) ? `[${key.default.join(', ')}]` : String(key.default);
}

function entry(key: KeyDescription): string {
  const unit = key.unit === null ? '' : ` (${key.unit})`;
  const facts = `Allowed: ${key.allowed}${unit}. Default: ${standard(key)}.${key.reload ? ' Takes effect on reload.' : ''}`;
  // Text in backquotes, which is code in Markdown, becomes bold in the manual page.
  const description = key.description
    .split('`')
    .map((part, index) => (index % 2 === 1 ? bold(part) : plain(part)))
    .join('');
  return `.TP\n${bold(key.key)}\n${lines(description)}\n.br\n${lines(plain(facts))}\n`;
}

const TITLES: Readonly<Record<string, string>> = {
  thresholds: 'Thresholds',
  alerts: 'Alerts',
  disk: 'Disk',
  temperature: 'Temperature',
  storage: 'Storage',
  rest: 'REST and the dashboard',
  ros: 'ROS 2',
  safe_shutdown: 'Safe shutdown',
  ops: 'Jobs',
  log: 'Log',
};

function keys(): string {
  let text = '';
  let open: string | null = null;
  for (const key of describeKeys()) {
    const section = key.key.includes('.') ? (key.key.split('.')[0] as string) : '';
    if (section !== open) text += `.SS ${section === '' ? 'This node' : (TITLES[section] ?? sentence(section))}\n`;
    open = section;
    text += entry(key);
  }
  return text;
}

/** edge_health_config(5), from the schema of the configuration. `day` as 2026-01-31. */
export function renderConfigManual(version: string, day: string): string {
  return `.\\" Generated from src/config/schema.ts by: npm run generate
.TH EDGE_HEALTH_CONFIG 5 ${day} "edge\\-health ${version}" "edge\\-health manual"
.SH NAME
edge_health_config \\- configuration of the health monitor edge\\-health
.SH SYNOPSIS
.B /etc/edge\\-health/edge_health_config.yaml
.br
.B /etc/edge\\-health/\\fIROLE\\fB_config.yaml
.SH DESCRIPTION
A YAML file. Every key is optional; keys with a dot are keys of a section:
.PP
.RS 4
.EX
publish_frequency: 2
thresholds:
  cpu:
    warning: 70
.EE
.RE
.PP
The file that is read is the first of: the one named by
.BR \\-\\-config ,
the one named by the environment variable
.BR EDGE_HEALTH_CONFIG ,
the one that this variable names in
.IR /etc/default/edge\\-health ,
.IR /etc/edge\\-health/edge_health_config.yaml .
Units of
.BI edge\\-health@ ROLE .service
read
.IR /etc/edge\\-health/ROLE_config.yaml .
.PP
An unknown key, a wrong type, a value out of range or a warning threshold that
is not below its critical one is an error: the service does not start, and
prints every error with its line.
.B edge\\-health check\\-config
does the same without starting.
.PP
.B systemctl reload edge\\-health
(SIGHUP) reads the file again and applies the keys that take effect on reload;
a file with errors changes nothing.
All other keys need a restart.
.PP
.B off
in place of the thresholds of a metric, such as
.BR "temperature: off" ,
switches off its alerts.
.SH KEYS
${keys()}.SH FILES
.TP
.I /etc/edge\\-health/edge_health_config.yaml
The configuration of
.BR edge\\-health.service ,
as installed with every key and its default.
.TP
.IR /etc/edge\\-health/edge_brain_config.yaml ", " sensor_node_config.yaml ", " actuator_node_config.yaml
Roles of a robot, each for a process of its own.
.TP
.I /etc/edge\\-health/shutdown.d
The hooks of a safe shutdown, unless
.B safe_shutdown.hooks_path
names another folder.
.SH SEE ALSO
.BR edge\\-health (8),
.I /usr/share/doc/edge\\-health/reference/configuration.md
`;
}
