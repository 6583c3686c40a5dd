import { describeKeys, type KeyDescription } from '../../src/config/describe.ts';

const HEADER = `# Configuration of edge-health. Every key is optional; the values below are the defaults.
# Check the file with: edge-health check-config FILE
# Apply changes of keys marked "reload" and of ops keys with: systemctl reload edge-health
# off in place of the thresholds of a metric, such as "temperature: off", switches off its alerts.
`;

function yamlValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map((item) => JSON.stringify(item)).join(', ')}]`;
  if (typeof value === 'string') return /^[A-Za-z0-9_./-]+$/.test(value) ? value : JSON.stringify(value);
  return String(value);
}

function wrap(text: string, indent: string): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && `${indent}# ${line} ${word}`.length > 110) {
      lines.push(`${indent}# ${line}`);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, `${indent}# ${line}`];
}

function note(key: KeyDescription): string {
  const unit = key.unit ? ` Unit: ${key.unit}.` : '';
  const standard = key.defaultIs ? ` Default: ${key.defaultIs}.` : '';
  return `${key.description} ${key.allowed[0]?.toUpperCase()}${key.allowed.slice(1)}.${unit}${standard}${key.reload ? ' (reload)' : ''}`;
}

/** The default configuration file with a comment for each key. */
export function renderDefaultYaml(): string {
  const lines = [HEADER];
  let open: string[] = [];
  for (const key of describeKeys()) {
    const path = key.key.split('.');
    const sections = path.slice(0, -1);
    let same = 0;
    while (same < sections.length && sections[same] === open[same]) same += 1;
    if (sections.length === 0 || same < sections.length) {
      if (same === 0 && lines.length > 1) lines.push('');
      for (let depth = same; depth < sections.length; depth += 1) lines.push(`${'  '.repeat(depth)}${sections[depth]}:`);
    }
    open = sections;
    const indent = '  '.repeat(sections.length);
    lines.push(...wrap(note(key), indent));
    const value = key.default ?? null;
    const example = key.example === null ? '' : ` ${key.example}`;
    lines.push(value === null ? `${indent}# ${path.at(-1)}:${example}` : `${indent}${path.at(-1)}: ${yamlValue(value)}`);
  }
  return `${lines.join('\n')}\n`;
}

/** The reference page of the configuration, as Markdown: a table per section. */
export function renderConfiguration(): string {
  const sections = new Map<string, string[]>();
  for (const key of describeKeys()) {
    const [first = '', second = ''] = key.key.split('.');
    // The sections of ops are as long as the others.
    const section = !key.key.includes('.') ? 'node' : key.key.split('.').length > 2 && first === 'ops' ? `${first}.${second}` : first;
    const standard = key.defaultIs ?? `\`${yamlValue(key.default)}\``;
    const cells = [
      `\`${key.key}\``,
      standard,
      `${key.allowed}${key.unit ? ` (${key.unit})` : ''}`,
      key.description,
      key.reload ? 'reload' : 'restart',
    ];
    const rows = sections.get(section) ?? [];
    rows.push(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
    sections.set(section, rows);
  }
  const tables = [...sections].map(
    ([section, rows]) => `## ${section}

| key | default | allowed | meaning | takes effect |
|---|---|---|---|---|
${rows.join('\n')}
`,
  );
  return `# Configuration

The file is the first of these:

1. \`--config FILE\`
2. the environment variable \`EDGE_HEALTH_CONFIG\`, unless it is empty
3. that variable in \`/etc/default/edge-health\`
4. \`/etc/edge-health/edge_health_config.yaml\`, in a checkout \`config/edge_health_config.yaml\`

Every key is optional. An unknown key, a wrong type, a value out of range, or a warning threshold that is not below the critical one is an error: the service does not start, and prints every error with its line. \`edge-health check-config FILE\` checks a file without starting the service. A file of more than 64 kB is refused, and so is one with more than 50 aliases.

\`off\` in place of the thresholds of a metric, such as \`temperature: off\`, [switches off its alerts](../operate/alerts.md#metrics-that-are-switched-off).

\`sudo systemctl reload edge-health\` (SIGHUP) reads the file again and applies the keys marked *reload*; a file with errors changes nothing. Changed keys that need a restart are listed in the log, in \`/status\` (\`config.restart_needed\`) and by \`sudo edge-health reload\`, with the value that is still in effect. systemctl then reports \`Job … failed\`, although the other keys were applied. The command also reloads the scheduler, which applies the keys of \`ops\`.

${tables.join('\n')}
*Generated from \`src/config/schema.ts\` by \`npm run generate\`.*
`;
}
