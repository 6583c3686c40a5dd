import fc from 'fast-check';
import t from 'tap';
import { runs, SEED } from '../../testkit/effort.ts';
import { UsageError } from './arguments.ts';
import { splitRosArguments } from './ros-arguments.ts';

const rulesOf = (...rules: string[]) => splitRosArguments(['--ros-args', ...rules.flatMap((rule) => ['-r', rule])]).ros?.rules;
const messageOf = (...argv: string[]): string => {
  try {
    return `taken: ${JSON.stringify(splitRosArguments(argv))}`;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return error.message;
  }
};

t.test('arguments without --ros-args are unchanged', async (t) => {
  t.same(splitRosArguments(['--config', 'a.yaml', '-r', 'x', '--']), { own: ['--config', 'a.yaml', '-r', 'x', '--'], ros: null });
  fc.assert(
    fc.property(fc.array(fc.string().filter((word) => word !== '--ros-args')), (argv) => {
      const { own, ros } = splitRosArguments(argv);
      return ros === null && own.length === argv.length && own.every((word, i) => word === argv[i]);
    }),
    { numRuns: runs(100, 1000), seed: SEED },
  );
});

t.test('the order of ros2 launch: the program’s own arguments first, then the rules', async (t) => {
  const { own, ros } = splitRosArguments([
    ...['--config', '/x/edge_brain_config.yaml', '--ros-args', '-r', '__node:=edge_brain', '-r', '__ns:=/robot1'],
    ...['--params-file', '/tmp/launch_params_x', '-r', 'health_status:=status', '--log-level', 'WARN'],
  ]);
  t.same(own, ['--config', '/x/edge_brain_config.yaml']);
  t.same(ros?.rules, [
    { kind: 'node', node: null, to: 'edge_brain' },
    { kind: 'namespace', to: '/robot1' },
    { kind: 'any', node: null, from: 'health_status', to: 'status' },
  ]);
  t.equal(ros?.logLevel, 'warning');
  t.equal(ros?.enclave, null);
  t.equal(ros?.notes.length, 1);
  t.match(ros?.notes[0], '--params-file /tmp/launch_params_x is not used: edge-health has no ROS parameters');
});

t.test('several groups, each ended by -- or by the end of the arguments', async (t) => {
  const { own, ros } = splitRosArguments([
    '--ros-args',
    '-r',
    '__ns:=/a',
    '--',
    '--config',
    'x',
    '--ros-args',
    '--ros-args',
    '--enclave',
    '/e',
  ]);
  t.same(own, ['--config', 'x']);
  t.same(ros?.rules, [{ kind: 'namespace', to: '/a' }]);
  t.equal(ros?.enclave, '/e');
  t.same(splitRosArguments(['--ros-args']).ros, { rules: [], notes: [], logLevel: null, enclave: null });
});

t.test('rules: nodes, schemes, private names', async (t) => {
  t.same(
    rulesOf(
      'alert_publisher:__node:=alarms',
      'alarms:/alerts:=/x/alerts',
      'rostopic://a:=~/b',
      'rosservice://safe_shutdown:=stop',
      'n:rostopic:///a:=b',
    ),
    [
      { kind: 'node', node: 'alert_publisher', to: 'alarms' },
      { kind: 'any', node: 'alarms', from: '/alerts', to: '/x/alerts' },
      { kind: 'topic', node: null, from: 'a', to: '~/b' },
      { kind: 'service', node: null, from: 'safe_shutdown', to: 'stop' },
      { kind: 'topic', node: 'n', from: '/a', to: 'b' },
    ],
  );
  t.same(rulesOf('__name:=x'), [{ kind: 'node', node: null, to: 'x' }]);
});

t.test('the usage error for an invalid or unsupported argument contains it', async (t) => {
  for (const [rule, why] of [
    ['a', /is not of the form from:=to/],
    ['a:=b:=c', /is not of the form/],
    [':=b', /is not of the form/],
    ['a:=', /is not of the form/],
    ['__ns:=robot1', /has no namespace after :=/],
    ['__ns:=/robot-1', /has no namespace/],
    ['health_monitor:__ns:=/x', /share a namespace/],
    ['__node:=a/b', /has no node name after :=/],
    ['a b:=c', /has no topic or service before :=/],
    ['a:=b c', /has no topic or service after :=/],
    ['/a/*:=/b', /before :=/],
    ['{node}:=/b', /before :=/],
    ['1:a:=b', /has no name before :=/],
    ['x:y:z:=b', /has no name before :=/],
  ] as const) {
    const message = messageOf('--ros-args', '-r', rule);
    t.match(message, why, rule);
    t.ok(message.includes(`"${rule}"`), 'it is shown');
  }
  t.match(messageOf('--ros-args', '-r'), /the ROS argument -r needs a value; see: http/);
  t.match(messageOf('--ros-args', '-r', '--'), /needs a value/);
  t.match(messageOf('--ros-args', '--enclave', ''), /needs a value/);
  t.match(messageOf('--ros-args', '--config', 'x'), /unknown ROS argument "--config"; allowed: --remap, --param, /);
  t.match(messageOf('--ros-args', 'toString'), /unknown ROS argument "toString"/);
  t.match(messageOf('--ros-args', '--log-level', 'loud'), '--log-level is "loud"; allowed: debug, info, warn, error, fatal');
});

t.test('parameters and options of rcl’s own log are accepted with a note that they have no effect', async (t) => {
  const { own, ros } = splitRosArguments([
    ...[
      '--ros-args',
      '-p',
      'use_sim_time:=true',
      '--param',
      'a:=1',
      '--log-config-file',
      'f',
      '--log-file-name',
      'g',
      '--log-level',
      'rcl:=debug',
    ],
    ...['--disable-stdout-logs', '--enable-rosout-logs', '--disable-external-lib-logs', '--log-level', 'fatal'],
  ]);
  t.same(own, []);
  t.equal(ros?.logLevel, 'error');
  t.same(
    ros?.notes.map((note) => note.split(' is not used')[0]),
    ['--param use_sim_time:=true', '--param a:=1', '--log-config-file f', '--log-file-name g', '--log-level rcl:=debug'],
  );
});

t.test('any words are either accepted or a usage error', async (t) => {
  const word = fc.oneof(
    fc.string(),
    fc.constantFrom('-r', '-p', '--ros-args', '--', '--log-level', '__ns:=/a', 'a:=b', '__proto__', 'x:__node:=y'),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), (argv) => {
      messageOf(...argv);
    }),
    { numRuns: runs(1000, 10000), seed: SEED },
  );
  t.pass('held');
});
