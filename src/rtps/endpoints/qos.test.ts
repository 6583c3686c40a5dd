import t from 'tap';
import { incompatiblePolicy, OWN_QOS, type Qos } from './qos.ts';

const STRICT: Qos = { ...OWN_QOS, reliable: true, durability: 1 };
const LAX: Qos = { ...OWN_QOS, reliable: false, durability: 0 };

/** Offered QoS, requested QoS and the policy in which they are incompatible: DDS 1.4, 2.2.3, row by row. */
const TABLE: readonly (readonly [what: string, offered: Partial<Qos>, requested: Partial<Qos>, policy: string | null])[] = [
  ['the same', {}, {}, null],
  ['reliable for best effort', { reliable: true }, { reliable: false }, null],
  ['best effort for reliable', { reliable: false }, { reliable: true }, 'RELIABILITY'],
  ['transient local for volatile', { durability: 1 }, { durability: 0 }, null],
  ['volatile for transient local', { durability: 0 }, { durability: 1 }, 'DURABILITY'],
  ['transient local for transient', { durability: 1 }, { durability: 2 }, 'DURABILITY'],
  ['persistent for transient local', { durability: 3 }, { durability: 1 }, null],
  ['a deadline for none', { deadlineSeconds: 1 }, { deadlineSeconds: Number.POSITIVE_INFINITY }, null],
  ['no deadline for one', { deadlineSeconds: Number.POSITIVE_INFINITY }, { deadlineSeconds: 1 }, 'DEADLINE'],
  ['the same deadline', { deadlineSeconds: 1 }, { deadlineSeconds: 1 }, null],
  ['manual for automatic liveliness', { liveliness: 2 }, { liveliness: 0 }, null],
  ['automatic for manual liveliness', { liveliness: 0 }, { liveliness: 2 }, 'LIVELINESS'],
  ['a shorter liveliness lease', { livelinessLeaseSeconds: 1 }, { livelinessLeaseSeconds: 2 }, null],
  ['a longer liveliness lease', { livelinessLeaseSeconds: 3 }, { livelinessLeaseSeconds: 2 }, 'LIVELINESS'],
  ['shared for exclusive', { ownership: 0 }, { ownership: 1 }, 'OWNERSHIP'],
  ['exclusive for shared', { ownership: 1 }, { ownership: 0 }, 'OWNERSHIP'],
  ['no partition and the one without a name', { partitions: [] }, { partitions: [''] }, null],
  ['the same partition among others', { partitions: ['a', 'b'] }, { partitions: ['c', 'b'] }, null],
  ['other partitions', { partitions: ['a'] }, { partitions: ['b'] }, 'PARTITION'],
  ['a partition and none', { partitions: ['a'] }, { partitions: [] }, 'PARTITION'],
  ['every partition asked for', { partitions: ['a'] }, { partitions: ['*'] }, null],
  ['every partition offered', { partitions: ['*'] }, { partitions: [] }, null],
];

t.test('compatibility of offered and requested QoS', async (t) => {
  for (const [what, offered, requested, policy] of TABLE) {
    t.equal(incompatiblePolicy({ ...STRICT, ...offered }, { ...LAX, ...requested }), policy, what);
  }
});

t.test('the first of several incompatible policies is returned', async (t) => {
  t.equal(incompatiblePolicy(LAX, STRICT), 'RELIABILITY');
  t.equal(incompatiblePolicy(STRICT, LAX), null);
});
