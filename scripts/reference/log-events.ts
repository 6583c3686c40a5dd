import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { type AnyNode as Node, parse } from 'acorn';
import type { LogLevel } from '../../src/core/ports.ts';

interface LogEvent {
  readonly level: LogLevel;
  /** Contains … in place of variable parts. */
  readonly message: string;
  readonly fields: readonly string[];
}

const LEVELS: readonly LogLevel[] = ['error', 'warning', 'notice', 'info', 'debug'];
const PROGRAMS = [
  { title: 'Service', unit: 'edge-health', folder: 'src' },
  { title: 'Scheduler', unit: 'edge-health-ops', folder: 'ops' },
] as const;

/**
 * The possible texts of an expression: of a literal, a template, or either branch of a condition. Empty if the text is computed elsewhere.
 */
function textsOf(node: Node): string[] {
  if (node.type === 'Literal') return typeof node.value === 'string' ? [node.value] : [];
  if (node.type === 'TemplateLiteral') return [node.quasis.map(({ value }) => value.cooked ?? '').join('…')];
  if (node.type === 'ConditionalExpression') return [...textsOf(node.consequent), ...textsOf(node.alternate)];
  return [];
}

const namesOf = (node: Node | undefined): string[] =>
  node?.type === 'ObjectExpression'
    ? node.properties.flatMap((property) => (property.type === 'Property' && property.key.type === 'Identifier' ? [property.key.name] : []))
    : [];

/** Whether a call is to a log function: `log(…)`, `this.#log(…)`, `options.log(…)`, `this.#rateLimitedLog(…)`. */
function isLog(callee: Node): boolean {
  const called = callee.type === 'MemberExpression' ? callee.property : callee;
  return (called.type === 'Identifier' || called.type === 'PrivateIdentifier') && ['log', 'rateLimitedLog'].includes(called.name);
}

/** Finds the calls `log(level, message, fields)` of a file. */
function eventsIn(file: string): LogEvent[] {
  const found: LogEvent[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(item);
    if (value === null || typeof value !== 'object' || !('type' in value)) return;
    const node = value as Node;
    if (node.type === 'CallExpression' && isLog(node.callee)) {
      const [level, message, fields] = node.arguments;
      if (level?.type === 'Literal' && message !== undefined && LEVELS.includes(level.value as LogLevel)) {
        // A message without fixed text is documented at its origin.
        const texts = textsOf(message).filter((text) => /[a-z]{3}/.test(text));
        found.push(...texts.map((text) => ({ level: level.value as LogLevel, message: text, fields: namesOf(fields) })));
      }
    }
    for (const member of Object.values(node)) visit(member);
  };
  visit(parse(stripTypeScriptTypes(readFileSync(file, 'utf8')), { ecmaVersion: 'latest', sourceType: 'module' }));
  return found;
}

/** The reference page of the programs' log messages, as Markdown, collected from the calls in their code. */
export function renderLogEvents(): string {
  const tables = PROGRAMS.map(({ folder, title, unit }) => {
    const files = globSync(`${folder}/**/*.ts`).filter((file) => !/\.test\.ts$|\/testing\//.test(file));
    const rows = new Map<string, LogEvent>();
    for (const event of files.sort().flatMap(eventsIn)) rows.set(`${event.level} ${event.message}`, event);
    const order = (a: LogEvent, b: LogEvent): number =>
      LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level) || (a.message < b.message ? -1 : 1);
    const lines = [...rows.values()].sort(order).map(({ fields, level, message }) => {
      const cells = [level, `\`${message.replaceAll('|', '\\|')}\``, fields.map((name) => `\`${name}\``).join(', ')];
      return `| ${cells.join(' | ')} |`;
    });
    return `## ${title}

\`journalctl -u ${unit}\`

| level | event | fields |
|---|---|---|
${lines.join('\n')}
`;
  });
  return `# Log events

Collected from the source code by \`npm run generate\`.

A line of the log is an event followed by \`key=value\` fields; … stands for what varies. In the journal, \`error\`, \`warning\`, \`notice\`, \`info\` and \`debug\` are the priorities 3 to 7: \`journalctl -u edge-health -p warning\` shows warnings and errors. \`log.level\` sets the lowest level that is logged. Fields without a value are omitted. Outside of the journal, a line begins with its level (\`warning: …\`), except at \`info\`.

Events that senders on the network can cause are logged at most once a minute, with the number of those left out as \`suppressed\`.

Logging never waits for its reader: a terminal stopped by Ctrl-S, a full pipe or a journal that hangs. Up to 64 kB of lines wait; further ones are dropped. Once the output accepts lines again, \`N log lines dropped\` (a warning) follows.

${tables.join('\n')}`;
}
