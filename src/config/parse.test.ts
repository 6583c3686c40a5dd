import fc from 'fast-check';
import t from 'tap';
import { renderConfiguration, renderDefaultYaml } from '../../scripts/reference/configuration.ts';
import { runs, SEED } from '../../testkit/effort.ts';
import { anyText } from '../../testkit/text.ts';
import { describeKeys, secretKeys } from './describe.ts';
import { type ConfigError, formatConfigError, parseConfig } from './parse.ts';
import { DEFAULT_CONFIG } from './schema.ts';

function errorsOf(text: string): readonly ConfigError[] {
  const parsed = parseConfig(text, 'robot.yaml');
  return parsed.ok ? [] : parsed.errors;
}

/** Errors as `line:column key`. */
const positions = (text: string): string[] => errorsOf(text).map(({ line, column, key }) => `${line}:${column} ${key}`);

function configOf(text: string): unknown {
  const parsed = parseConfig(text, 'robot.yaml');
  return parsed.ok ? parsed.config : parsed.errors.map(formatConfigError);
}

t.test('the generated default file parses to exactly the defaults', async (t) => {
  const yaml = renderDefaultYaml();
  t.same(configOf(yaml), DEFAULT_CONFIG);
  for (const { key } of describeKeys()) t.match(yaml, new RegExp(`^ *(# )?${key.split('.').at(-1)}:`, 'm'), `${key} is in it`);
  const uncommented = yaml.replaceAll(/^( *)# (\w+:)$/gm, '$1$2');
  t.not(uncommented, yaml);
  t.same(configOf(uncommented), DEFAULT_CONFIG, 'with the keys that are commented out as well');
});

t.test('the defaults are those of the specification', async (t) => {
  t.match(DEFAULT_CONFIG, {
    node_name: 'health_monitor',
    publish_frequency: 1,
    thresholds: {
      cpu: { warning: 80, critical: 90 },
      memory: { warning: 85, critical: 95 },
      disk: { warning: 80, critical: 90 },
      temperature: { warning: 70, critical: 85 },
    },
    alerts: { hysteresis_percent: 5, raise_after_seconds: 3, clear_after_seconds: 10 },
    disk: { paths: ['/'] },
    temperature: { sensor: null },
    storage: { path: null, max_megabytes: 512 },
    rest: { host: null, port: 5000, token_file: null, allowed_origins: [] },
    ros: { transport: 'auto', domain_id: null, discovery_range: null, static_peers: null },
    safe_shutdown: { enabled: true, allow_from: [], stop_units: [] },
  });
});

t.test('every key and every section is optional', async (t) => {
  for (const text of [
    '',
    '\n',
    '# nothing\n',
    '---\n',
    'null',
    '{}',
    'thresholds:\n',
    'thresholds:\n  cpu:\n',
    '\uFEFF',
    '%YAML 1.2\n---\n',
  ]) {
    t.same(configOf(text), DEFAULT_CONFIG, JSON.stringify(text));
  }
  for (const { key, default: standard } of describeKeys()) {
    if (standard === null || standard === undefined) continue;
    const nested = key.split('.').reduceRight<unknown>((value, name) => ({ [name]: value }), standard);
    t.same(configOf(JSON.stringify(nested)), DEFAULT_CONFIG, `${key} alone`);
  }
});

t.test('every key refuses a wrong type, with its position and the allowed values', async (t) => {
  for (const { key, allowed, secret } of describeKeys()) {
    const path = key.split('.');
    for (const [wrong, found] of [
      ['{a: 1}', '{"a":1}'],
      [allowed.startsWith('true') ? '"x"' : 'true', allowed.startsWith('true') ? '"x"' : 'true'],
    ] as const) {
      const text = `${path.map((name, depth) => `${'  '.repeat(depth)}${name}:`).join('\n')} ${wrong}\n`;
      const errors = errorsOf(text);
      t.match(
        errors,
        [
          {
            file: 'robot.yaml',
            line: path.length,
            column: 2 * (path.length - 1) + (path.at(-1) as string).length + 3,
            key,
            found: secret ? /^a (section|boolean)$/ : found,
            allowed,
          },
        ],
        `${key}: ${wrong}`,
      );
      t.equal(errors.length, 1);
    }
  }
});

t.test('numbers out of range are refused', async (t) => {
  const ranges: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['publish_frequency', ['0', '-1', '1000.1', '.inf', '-.inf', '.nan', '1e9'], ['0.001', '1000', '1e2']],
    ['thresholds.cpu.warning', ['-0.1', '100.1'], ['0', '89.9']],
    ['thresholds.temperature.critical', ['150.1'], ['150', '70.1']],
    ['alerts.hysteresis_percent', ['-1', '50.5'], ['0', '50']],
    ['alerts.raise_after_seconds', ['-0.001', '3601'], ['0', '3600', '0.5']],
    ['storage.max_megabytes', ['7', '1000001', '10.5'], ['8', '1000000']],
    ['rest.port', ['-1', '65536', '80.5', '1e10'], ['0', '65535', '0x50']],
    ['ros.domain_id', ['-1', '233'], ['0', '232', 'null']],
  ];
  for (const [key, wrong, right] of ranges) {
    const [head, ...rest] = key.split('.').reverse();
    const nested = (value: string): string => rest.reduce((inner, name) => `{${name}: ${inner}}`, `{${head}: ${value}}`);
    for (const value of wrong) t.match(errorsOf(nested(value)), [{ key, allowed: /(from|above) .*(to|up to) / }], `${key}: ${value}`);
    for (const value of right) t.same(errorsOf(nested(value)), [], `${key}: ${value}`);
  }
  t.match(errorsOf('publish_frequency: .nan')[0]?.found, 'NaN');
  t.match(errorsOf('publish_frequency: .inf')[0]?.found, 'Infinity');
});

t.test('texts of a wrong form are refused', async (t) => {
  for (const name of ['a', '_x', 'robot_7', 'A'.repeat(64)]) t.same(errorsOf(`node_name: ${name}`), [], name);
  for (const name of ['', '7up', 'a-b', 'a/b', 'a b', 'ü', 'a'.repeat(65), '5'])
    t.equal(errorsOf(`node_name: "${name}"`).length, 1, JSON.stringify(name));
  const named = (name: number, namespace: number): string => `node_name: ${'n'.repeat(name)}\nros: {namespace: /${'s'.repeat(namespace)}}`;
  t.same(errorsOf(named(30, 33)), [], 'as statuses and alert ids have it: 64 characters');
  t.match(errorsOf(named(30, 34)), [
    { key: 'ros.namespace', found: /^65 characters in "s+\/n+/, allowed: /^at most 64 in ros.namespace, \/ and/ },
  ]);
  t.match(errorsOf(`ros: {namespace: ${'s'.repeat(64)}}`), [{ key: 'ros.namespace', line: 1 }], 'with the default name');
  t.same(errorsOf('ops: {check: {nodes: [robot1/health_monitor, Prüfstand 7]}}'), []);
  t.match(errorsOf('ops: {check: {nodes: ["a:b"]}}'), [{ key: 'ops.check.nodes.0', allowed: /node names of 1 to 64/ }]);
  for (const origin of ['*', 'https://a.example', 'http://a:8080']) t.same(errorsOf(`rest: {allowed_origins: ["${origin}"]}`), [], origin);
  for (const origin of ['a.example', 'https://a/', 'ftp://a', 'https://a b', '']) {
    t.match(errorsOf(`rest: {allowed_origins: ["${origin}"]}`), [{ key: 'rest.allowed_origins.0', allowed: /origin such as/ }], origin);
  }
  t.match(positions('disk:\n  paths: [/, 5, relative]\n'), ['2:14 disk.paths.1', '2:17 disk.paths.2']);
  t.match(errorsOf('disk: {paths: []}'), [{ key: 'disk.paths', found: '[]' }]);
});

t.test('the error for an unknown key suggests the closest known one', async (t) => {
  const hints: readonly (readonly [string, string, string | null])[] = [
    ['publish_frequncy: 1', 'publish_frequncy', 'did you mean publish_frequency?'],
    ['Node_Name: x', 'Node_Name', 'did you mean node_name?'],
    ['treshold: {}', 'treshold', 'did you mean thresholds?'],
    ['thresholds: {cpu: {critcal: 1}}', 'thresholds.cpu.critcal', 'did you mean thresholds.cpu.critical?'],
    ['thresholds: {gpu: {}}', 'thresholds.gpu', 'did you mean thresholds.cpu?'],
    ['rest: {prot: 1}', 'rest.prot', 'did you mean rest.port?'],
    ['thresholds: {cpu: {warn: 1}}', 'thresholds.cpu.warn', 'did you mean thresholds.cpu.warning?'],
    ['thresholds: {temperature: {crit: 1}}', 'thresholds.temperature.crit', 'did you mean thresholds.temperature.critical?'],
    ['ops: {timeouts: {backup: 1}}', 'ops.timeouts.backup', 'did you mean ops.timeouts.backup_logs?'],
    ['disk: {warning: 1}', 'disk.warning', 'did you mean thresholds.disk.warning?'],
    ['temperature: {warn: 1}', 'temperature.warn', 'did you mean thresholds.temperature.warning?'],
    ['cpu: {warning: 1}', 'cpu', 'did you mean thresholds.cpu?'],
    ['alerts: {email: {}}', 'alerts.email', 'did you mean ops.notify.email?'],
    ['max_megabytes: 1', 'max_megabytes', 'did you mean storage.max_megabytes?'],
    ['rest: {node_name: x}', 'rest.node_name', 'did you mean node_name?'],
    ['completely_different: 1', 'completely_different', null],
    [`${'x'.repeat(500)}: 1`, 'x'.repeat(500), null],
  ];
  for (const [text, key, hint] of hints)
    t.match(errorsOf(text), [{ key, found: 'an unknown key', hint, allowed: /^(the keys|in \S+) \w+/ }], text.slice(0, 40));
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '<<', '1', '~', '[a, b]']) {
    t.equal(errorsOf(`? ${name}\n: 1\n`).length, 1, `${name} is no key`);
    t.equal(errorsOf(`thresholds:\n  ? ${name}\n  : 1\n`).length, 1, `nor in a section`);
  }
});

t.test('all errors at once, each with its position, in the order of the file', async (t) => {
  const text = `# comment
node_name: 7 robots
publish_frequency: 5000
thresholds:
  cpu:
    warning: 95
    critical: 90
    warnig: 5
  memory: [80, 90]
  gpu: {warning: 1}
alerts: {hysteresis_percent: lots, raise_after_second: 1}
rest:
  port: "5000"
  port: 5001
one: 1
two: 2
`;
  t.same(positions(text), [
    '2:12 node_name',
    '3:20 publish_frequency',
    '6:14 thresholds.cpu.warning',
    '8:5 thresholds.cpu.warnig',
    '9:11 thresholds.memory',
    '10:3 thresholds.gpu',
    '11:30 alerts.hysteresis_percent',
    '11:36 alerts.raise_after_second',
    '14:3 rest.port',
    '15:1 one',
    '16:1 two',
  ]);
});

t.test('the error for a duplicate key has its name', async (t) => {
  t.match(errorsOf('node_name: a\nnode_name: b\n'), [
    {
      line: 2,
      column: 1,
      key: 'node_name',
      found: 'the same key twice',
      allowed: 'each key once',
      hint: 'it is already at line 1; change it there',
    },
  ]);
  t.match(errorsOf('rest:\n  port: 1\n  host: x\n  port: 1\n'), [{ line: 4, column: 3, key: 'rest.port' }]);
  t.match(errorsOf('rest: {port: 1}\nlog: {level: info}\nrest: {port: 1}\n'), [{ line: 3, column: 1, key: 'rest' }]);
});

t.test('warning must be below critical, including defaults', async (t) => {
  for (const [text, key, found] of [
    ['thresholds: {cpu: {warning: 90, critical: 90}}', 'thresholds.cpu.warning', 'warning 90, critical 90'],
    ['thresholds: {cpu: {warning: 91, critical: 90}}', 'thresholds.cpu.warning', 'warning 91, critical 90'],
    ['thresholds: {memory: {warning: 95}}', 'thresholds.memory.warning', 'warning 95, critical 95 (the default)'],
    ['thresholds: {temperature: {critical: 70}}', 'thresholds.temperature.critical', 'warning 70 (the default), critical 70'],
  ] as const) {
    t.match(errorsOf(text), [{ key, allowed: 'warning below critical', found }], text);
  }
  t.same(errorsOf('thresholds: {cpu: {warning: 89.9, critical: 90}}'), []);
  t.same(errorsOf('thresholds: {cpu: {critical: 100}}'), []);
});

t.test('the error for invalid YAML has its position', async (t) => {
  for (const [text, line] of [
    ['a: [1, 2', 1],
    ['node_name: "x', 1],
    ['rest:\n\tport: 1', 2],
    ['node_name: a: b', 1],
    ['rest:\n  port: 1\n host: x\n', 3],
    ['node_name: @x', 1],
    ['}', 1],
    ['node_name: x\n---\nnode_name: y\n', 2],
    ['node_name: x\n...\n---\n', 3],
  ] as const) {
    const errors = errorsOf(text);
    t.ok(errors.length > 0, JSON.stringify(text));
    t.equal(errors[0]?.line, line, JSON.stringify(text));
  }
  t.match(errorsOf('node_name: x\n---\nnode_name: y\n'), [{ found: 'a second document', allowed: 'one document' }]);
});

t.test('a document that is not a map of keys is refused', async (t) => {
  for (const text of ['[]', '- a\n- b\n', 'hello', '5', 'true', '"text"', '!!set {a}', '!!omap [a: 1]']) {
    t.match(errorsOf(text), [{ key: '', line: 1, allowed: /^a section with the keys node_name, / }], text);
  }
  for (const value of ['[]', '[1]', 'x', '5', 'false', '!!set {a}']) {
    t.match(
      errorsOf(`thresholds: ${value}`),
      [{ key: 'thresholds', allowed: 'a section with the keys cpu, memory, disk, temperature' }],
      value,
    );
  }
});

t.test('aliases may repeat a section, but not multiply it', async (t) => {
  t.match(configOf('thresholds:\n  cpu: &same {warning: 1, critical: 2}\n  memory: *same\n'), {
    thresholds: { cpu: { warning: 1 }, memory: { warning: 1, critical: 2 } },
  });
  const bomb = Array.from(
    { length: 12 },
    (_, n) => `k${n}: &a${n} [${Array.from({ length: 10 }, () => (n === 0 ? 'x' : `*a${n - 1}`)).join()}]`,
  ).join('\n');
  t.match(errorsOf(bomb), [{ line: 0, allowed: /^at most 10000 values/ }]);
  t.match(errorsOf(`k: &a x\nl: [${'*a,'.repeat(51)}]`), [{ line: 0, allowed: 'at most 50 aliases' }]);
  t.match(errorsOf('rest: {port: *nothing}'), [{ line: 1, column: 14, found: /\*nothing/ }]);
  for (const text of ['disk:\n  paths: &a [*a]\n', '&a\nthresholds: *a\n', 'node_name: &a {b: *a}', '? &a [*a]\n: 1\n'])
    t.ok(errorsOf(text).length > 0, `contains itself: ${text}`);
});

t.test('a text may have 64 kB', async (t) => {
  const text = (bytes: number): string => `#${'x'.repeat(bytes - 1)}`;
  t.same(errorsOf(text(65_536)), []);
  const [large] = errorsOf(text(65_537));
  t.equal(formatConfigError(large as ConfigError), 'robot.yaml: 65537 bytes; the limit is 65536 bytes (64 kB)');
  t.match(errorsOf(`#${'ü'.repeat(33_000)}`), [{ found: /^66001 bytes/ }], 'bytes, not characters');
});

/** Texts of 64 kB with as much as possible of one thing, of which a parser could do quadratic work or recurse. */
const EXTREME: Readonly<Record<string, (count: number) => string>> = {
  anchors: (n) => `&a${n} ,`,
  'aliases of one anchor each': (n) => `&a${n} 1,*a${n},`,
  'aliases without an anchor': () => '*a,',
  'different keys': (n) => `{k${n}: 1},`,
  'keys that are lists': (n) => `[${n}]: 1,`,
  errors: () => '@,',
  quotes: () => '"",',
  tags: (n) => `!t${n} a,`,
};

t.test('a text with too much in it is refused before all of it was parsed', async (t) => {
  for (const [what, part] of Object.entries(EXTREME)) {
    let text = '[';
    for (let n = 0; text.length < 65_000; n += 1) text += part(n);
    t.match(errorsOf(`${text}]`), [{ line: 0, allowed: /^at most \d+ / }], what);
  }
  for (const text of ['\n', '#\n', 'a:\n', '? {a: 1}\n'])
    t.match(errorsOf(text.repeat(65_000 / text.length)), [{ line: 0, allowed: 'at most 10000 together' }], JSON.stringify(text));
});

t.test('of thousands of errors of one kind, the first hundred are shown', async (t) => {
  const keys = Array.from({ length: 1000 }, (_, n) => `k${n}`);
  t.equal(errorsOf(`thresholds: {${keys.join(': 1, ')}: 1}`).length, 100);
  t.equal(errorsOf(`disk: {paths: [${'1,'.repeat(2000)}]}`).length, 100);
  t.equal(errorsOf('node_name: x\n'.repeat(1000)).length, 100);
});

t.test('merge keys of YAML 1.1 are refused or merged, and never throw', async (t) => {
  const merged = '%YAML 1.1\n---\nthresholds:\n  cpu: &a {warning: 1, critical: 2}\n  memory: {<<: *a, warning: 0.5}\n';
  t.match(configOf(merged), { thresholds: { memory: { warning: 0.5, critical: 2 } } });
  t.match(errorsOf('%YAML 1.1\n---\nthresholds: {<<: 5}\n'), [{ found: /^invalid YAML: / }]);
  t.match(errorsOf('thresholds: {<<: {cpu: {}}}\n'), [{ key: 'thresholds.<<', found: 'an unknown key' }], 'YAML 1.2 has none');
});

t.test('the error for a text that is too deep or binary is short', async (t) => {
  t.match(errorsOf('node_name: a\0b'), [{ found: 'a binary file' }]);
  for (const text of ['['.repeat(20_000), 'a: '.repeat(10_000), '{a: '.repeat(10_000), '- '.repeat(20_000)]) {
    const errors = errorsOf(text);
    t.ok(errors.length > 0 && errors.length <= 20, `${errors.length} errors for ${text.slice(0, 10)}…`);
  }
  t.equal(errorsOf(`node_name: ${'x'.repeat(60_000)}`)[0]?.found.length, 60);
});

t.test('an error is one line in the style of compilers', async (t) => {
  const [first] = errorsOf('rest:\n  prt: 1\n');
  t.match(
    formatConfigError(first as ConfigError),
    /^robot\.yaml:2:3: rest\.prt: found an unknown key; allowed: in rest host, port, .* \(did you mean rest\.port\?\)$/,
  );
  const whole: ConfigError = {
    file: 'x.yaml',
    line: 0,
    column: 0,
    key: '',
    found: 'no such file',
    allowed: 'a readable YAML file',
    hint: null,
  };
  t.equal(formatConfigError(whole), 'x.yaml: no such file');
});

t.test('any text results in a configuration or in a list of errors', async (t) => {
  const keys = describeKeys().map(({ key }) => key.split('.').at(-1) as string);
  const line = fc.tuple(
    fc.nat({ max: 3 }),
    fc.constantFrom(...keys, 'thresholds', 'cpu', 'rest', 'x', '-', '?', '<<', '&a', '*a'),
    fc.oneof(fc.constantFrom('', '1', '[', '{', '&a', '*a', '|', '"', "'", '!!set', '!!binary', '~', '.nan'), fc.string({ maxLength: 8 })),
  );
  const document = fc
    .array(line, { maxLength: 12 })
    .map((lines) => lines.map(([depth, key, value]) => `${'  '.repeat(depth)}${key}: ${value}`).join('\n'));
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(document, anyText(200)), (text) => {
      const parsed = parseConfig(text, 'f');
      if (parsed.ok) return true;
      refused += 1;
      const lineCount = text.split('\n').length;
      return (
        parsed.errors.length > 0 &&
        parsed.errors.every(
          (error) => error.line >= 0 && error.line <= lineCount + 1 && error.found !== '' && !formatConfigError(error).includes('\n'),
        )
      );
    }),
    { numRuns: runs(400, 10000), seed: SEED },
  );
  t.ok(refused > 100, `${refused} were refused`);
});

t.test('the reference page names every key with its default', async (t) => {
  const page = renderConfiguration();
  for (const { key } of describeKeys()) t.match(page, new RegExp(`^\\| \`${key.replaceAll('.', '\\.')}\` \\| \\S`, 'm'), key);
});

t.test('units that the safe shutdown needs cannot be stopped by it', async (t) => {
  const stopping = (unit: string): string => `safe_shutdown: {stop_units: [${JSON.stringify(unit)}]}`;
  for (const unit of [
    'edge-health',
    'edge-health.service',
    'edge-health-stop.socket',
    'dbus.socket',
    'polkit.service',
    'systemd-logind',
    'system.slice',
  ]) {
    t.equal(errorsOf(stopping(unit)).length, 1, unit);
  }
  for (const unit of ['robot.service', 'edge-health@sensor_node.service', 'dbus-org.example.service', 'robot.slice', 'arm@left.target']) {
    t.match(configOf(stopping(unit)), { safe_shutdown: { stop_units: [unit] } });
  }
});

t.test('an error never shows a secret, even under a wrong key', async (t) => {
  t.same(secretKeys, ['ops.notify.webhook.url']);
  const address = 'https://hooks.example.com/services/T0/S3CRET?key=S3CRET';
  const webhook = (text: string): string => `ops:\n  notify:\n    webhook:${text}\n`;
  const documents = [
    webhook(` ${address}`),
    webhook(`\n      url: [${address}]`),
    webhook('\n      url: [hooks.example.com/S3CRET]'),
    webhook(`\n      url: ${address}${'x'.repeat(5000)}`),
    webhook(`\n      url ${address}`),
    webhook(`\n      ${address}: x`),
    webhook(`\n      url: *${address}`),
    webhook(`\n      url: }${address}`),
    webhook(`\n      url: |${address}`),
    webhook(`\n      token_file: [${address}]`),
    `ops:\n  notify: ${address}\n`,
    `rest: {allowed_origins: ["https://user:S3CRET@robot.example/"]}`,
    address,
  ];
  for (const text of documents) {
    const lines = errorsOf(text).map(formatConfigError);
    t.ok(lines.length > 0, text);
    t.notMatch(lines.join('\n'), /S3CRET/);
  }
  t.match(errorsOf(webhook(` ${address}`))[0], { key: 'ops.notify.webhook', found: 'a text' });
});

t.test('the webhook URL is allowed in the configuration or in a file, not in both', async (t) => {
  const errors = errorsOf('ops: {notify: {webhook: {url: "https://a.example/x", url_file: /etc/x}}}');
  t.match(
    errors.map(({ key, found, allowed }) => `${key} ${found} ${allowed}`),
    ['ops.notify.webhook.url_file url as well url or url_file, not both'],
  );
  for (const one of ['url: "https://a.example/x", url_file: null', 'url: null, url_file: /etc/x', 'url_file: x'])
    t.same(errorsOf(`ops: {notify: {webhook: {${one}}}}`), [], one);
  t.match(errorsOf('ops: {notify: {webhook: {url_file: "https://a.example/x"}}}'), [
    { found: '"https://a.example/…"', allowed: 'the path of a file' },
  ]);
});

t.test('texts with control or invisible characters are refused', async (t) => {
  const hint = 'without control and invisible characters';
  for (const text of ['a\\nb', 'a\\e[2Jb', 'a\\u202eb', 'a\\uFEFFb', 'a\\0b']) {
    const wrong = [`temperature: {sensor: "${text}"}`, `storage: {path: "${text}"}`, `disk: {paths: ["/${text}"]}`];
    for (const yaml of wrong) t.match(errorsOf(yaml), [{ hint }], yaml);
    t.notMatch(wrong.flatMap(errorsOf).map(formatConfigError).join(''), /\p{C}/u);
  }
  t.same(errorsOf('ops: {check: {nodes: ["Räuber 運用"]}}'), []);
  t.same(errorsOf('temperature: {sensor: "Räuber 運用 🤖"}'), []);
});

t.test('off in place of the thresholds of a metric, and of nothing else', async (t) => {
  for (const value of ['off', 'Off', '"off"', 'false']) {
    const parsed = parseConfig(`thresholds: {temperature: ${value}}`, 'x.yaml');
    t.match(parsed, { ok: true, config: { thresholds: { temperature: 'off', cpu: { warning: 80 } } } }, value);
  }
  t.match(parseConfig('%YAML 1.1\n---\nthresholds: {temperature: off}', 'x.yaml'), { config: { thresholds: { temperature: 'off' } } });
  for (const text of ['thresholds: {temperature: on}', 'thresholds: {temperature: 0}', 'thresholds: {temperature: true}']) {
    const parsed = parseConfig(text, 'x.yaml');
    t.match(parsed, { ok: false, errors: [{ key: 'thresholds.temperature', allowed: /^a section with .*, or off$/ }] }, text);
  }
  for (const [text, key] of [
    ['thresholds: off', 'thresholds'],
    ['alerts: off', 'alerts'],
    ['thresholds: {cpu: {warning: off}}', 'thresholds.cpu.warning'],
  ] as const)
    t.match(parseConfig(text, 'x.yaml'), { ok: false, errors: [{ key }] }, text);
  const own = parseConfig('thresholds: {cpu: {raise_after_seconds: 30, clear_after_seconds: 0}}', 'x.yaml');
  t.match(own, { ok: true, config: { thresholds: { cpu: { raise_after_seconds: 30, clear_after_seconds: 0, warning: 80 } } } });
});
