import { readFileSync } from 'node:fs';
import t from 'tap';
import { readDefinitions } from '../../scripts/ros/definitions.ts';
import { parseMessage, parseService, type StructDefinition } from '../../scripts/ros/interface-text.ts';
import { renderInterfaces } from '../../scripts/ros/render.ts';
import { type Structs, typeHash } from '../../scripts/ros/type-hash.ts';

const NAME = 'some_msgs/msg/Thing';
const TEXT = `# A thing.
uint8 KIND_A=1
float64 size       # in metres
string name

Part[] parts
other_msgs/Point[3] corners
`;
const OTHERS: Structs = new Map(
  [
    parseMessage('some_msgs/msg/Part', 'int32 id\n'),
    parseMessage('other_msgs/msg/Point', 'float64 x\nfloat64 y\n'),
    parseMessage('other_msgs/msg/Unused', 'bool a\n'),
  ].map((struct) => [struct.name, struct]),
);
const hashOf = (text: string, others: Structs = OTHERS): string => typeHash(NAME, new Map([...others, [NAME, parseMessage(NAME, text)]]));

t.test('every type has the hash that ROS 2 computed', async (t) => {
  const { structs } = readDefinitions();
  const expected = JSON.parse(readFileSync(new URL('../../testkit/fixtures/ros2-type-hashes.json', import.meta.url), 'utf8')) as object;
  t.same(Object.fromEntries([...structs.keys()].sort().map((name) => [name, typeHash(name, structs)])), expected);
});

t.test('comments, constants, blank lines and spaces do not change a hash', async (t) => {
  const bare = 'float64 size\nstring name\nPart[] parts\nother_msgs/Point[3] corners';
  t.equal(hashOf(bare), hashOf(TEXT));
  t.equal(hashOf(bare.replaceAll(' ', '   ').replaceAll('\n', '  # x\r\n\n')), hashOf(TEXT));
  t.equal(hashOf(bare.replace('other_msgs/Point', 'other_msgs/msg/Point').replace('Part[]', 'some_msgs/Part[]')), hashOf(TEXT));
});

t.test('names, types, order, repetition and referenced types change a hash', async (t) => {
  const changed = [
    TEXT,
    TEXT.replace('float64 size', 'float32 size'),
    TEXT.replace('float64 size', 'float64 length'),
    TEXT.replace('string name', 'string<=10 name'),
    TEXT.replace('string name', 'string[] name'),
    TEXT.replace('Part[] parts', 'Part parts'),
    TEXT.replace('Part[] parts', 'Part[<=4] parts'),
    TEXT.replace('Point[3]', 'Point[4]'),
    TEXT.replace('float64 size       # in metres\nstring name', 'string name\nfloat64 size'),
  ].map((text) => hashOf(text));
  const point = parseMessage('other_msgs/msg/Point', 'float64 x\nfloat64 z\n');
  changed.push(hashOf(TEXT, new Map([...OTHERS, [point.name, point]])));
  t.equal(new Set(changed).size, changed.length);
  for (const hash of changed) t.match(hash, /^RIHS01_[0-9a-f]{64}$/);
});

t.test('fields are read with their repetition and bounds', async (t) => {
  const { fields } = parseMessage(NAME, 'char[16] a\nstring<=256 b\nint64[<=5] c\nstring<=3[] d\nByte e');
  const shape = ({ name, type, repetition, capacity, stringCapacity }: StructDefinition['fields'][number]) =>
    [name, type, repetition, capacity, stringCapacity] as const;
  t.same(fields.map(shape), [
    ['a', 'char', 'array', 16, 0],
    ['b', 'string', 'once', 0, 256],
    ['c', 'int64', 'bounded_sequence', 5, 0],
    ['d', 'string', 'sequence', 0, 3],
    ['e', 'some_msgs/msg/Byte', 'once', 0, 0],
  ]);
});

t.test('a definition that cannot be read is an error with its position', async (t) => {
  t.throws(() => parseMessage(NAME, 'bool a\nfloat64 speed 1.5\n'), { message: `${NAME}, line 2: cannot read "float64 speed 1.5"` });
  t.throws(() => parseMessage(NAME, 'bool Upper\n'), /line 1: cannot read/);
  t.throws(() => parseMessage(NAME, '# nothing\n'), { message: `${NAME}: no field` });
  t.throws(() => parseService('a/srv/B', 'bool a\n'), /found 0 lines of dashes, one is needed/);
  t.throws(() => hashOf('Missing m\n'), { message: 'no definition of some_msgs/msg/Missing' });
});

t.test('the shipped definitions are found, and rendered the same each time', async (t) => {
  const definitions = readDefinitions();
  t.ok(definitions.structs.has('edge_health_interfaces/msg/ShutdownStatus'));
  t.same(
    definitions.services.map(({ name }) => name),
    [
      ...['DescribeParameters', 'GetParameterTypes', 'GetParameters', 'ListParameters', 'SetParameters', 'SetParametersAtomically'].map(
        (name) => `rcl_interfaces/srv/${name}`,
      ),
      'edge_health_interfaces/srv/SafeShutdown',
    ],
  );
  t.equal(renderInterfaces(readDefinitions()), renderInterfaces(definitions));
});
