import t from 'tap';
import type { Stamp } from '../../core/alerts/node-watch.ts';
import type { Sender } from '../../ros/graph.ts';
import { type Admission, CONFLICT_SECONDS, NodePublisher, REPLACE_SECONDS } from './node-publisher.ts';

const ROBOT: Sender = { participant: 'a1', address: '10.0.0.2' };
const RESTARTED: Sender = { participant: 'a2', address: '10.0.0.2' };
const RIVAL: Sender = { participant: 'b1', address: '10.0.0.3' };
const SILENT_SECONDS = 3;

/** One name, whose publishers send a status each time. */
class Name {
  readonly publisher = new NodePublisher();
  readonly delivered: string[] = [];

  take(sender: Sender, at: number, more: { readonly stamp?: Stamp; readonly isKnown?: boolean } = {}): Admission {
    const { isKnown = false, stamp = { ms: at, print: sender.participant.charCodeAt(0) } } = more;
    const deliver = (): void => {
      this.delivered.push(`${sender.participant} ${at}`);
    };
    return this.publisher.takeStatus(sender, stamp, isKnown, at, SILENT_SECONDS, deliver);
  }

  /** The rival appears after the robot, and both publish until the end of the conflict's beginning. */
  inConflict(): number {
    for (let at = 0; at <= CONFLICT_SECONDS + 1; at += 1) {
      this.take(ROBOT, at);
      this.take(RIVAL, at + 0.5);
    }
    return CONFLICT_SECONDS + 1;
  }
}

t.test('a restarted publisher succeeds the former one, and none of its statuses is lost', async (t) => {
  for (const successor of [RESTARTED, RIVAL]) {
    const left = new Name();
    left.take(ROBOT, 0);
    t.ok(left.publisher.remove(ROBOT.participant, 0.1), 'nobody publishes');
    t.equal(left.take(successor, 1), 'held');
    t.same(left.delivered, [`${successor.participant} 1`], 'at once if it has left');
    t.equal(left.take(successor, 2), 'accepted');

    const killed = new Name();
    killed.take(ROBOT, 0);
    for (const at of [1, 2]) t.equal(killed.take(successor, at), 'held');
    t.same(killed.delivered, []);
    killed.publisher.succeed(SILENT_SECONDS + 0.1, SILENT_SECONDS);
    t.same(killed.delivered, [`${successor.participant} 1`, `${successor.participant} 2`], 'in order, when the former one missed a status');
    t.same(killed.publisher.conflict(4), []);
    t.equal(killed.take(ROBOT, 4), successor === RESTARTED ? 'held' : 'accepted', 'one at the same address keeps the place');
  }
});

t.test('both may publish for as long as a restart takes', async (t) => {
  const name = new Name();
  for (let at = 0; at < CONFLICT_SECONDS; at += 1) {
    t.equal(name.take(ROBOT, at), 'accepted');
    t.equal(name.take(RESTARTED, at + 0.5), 'held');
  }
  t.same(name.publisher.conflict(CONFLICT_SECONDS), []);
  t.notOk(name.publisher.remove(ROBOT.participant, CONFLICT_SECONDS), 'the other one publishes');
  t.equal(name.delivered.length, CONFLICT_SECONDS);
  t.equal(name.take(RESTARTED, CONFLICT_SECONDS + 1), 'accepted');
});

t.test('of two that publish, the established one wins, also after its restart', async (t) => {
  const name = new Name();
  let at = name.inConflict();
  t.same(name.publisher.conflict(at), [ROBOT.address, RIVAL.address]);
  t.equal(name.take(RIVAL, at + 0.5), 'refused');
  t.equal(name.take({ ...RIVAL, participant: 'b2' }, at + 0.6), 'refused', 'a new participant of the same host');
  name.publisher.remove(ROBOT.participant, at + 0.7);
  t.same(name.publisher.conflict(at + 0.7), [], 'one is gone');
  for (at += 1; at < 40; at += 1) t.equal(name.take(RIVAL, at), 'refused');
  name.take(RESTARTED, at);
  t.same(name.delivered, [`a2 ${at}`]);
  t.same(name.publisher.conflict(at), [RESTARTED.address, RIVAL.address]);
});

t.test('a rival gets the name once the established publisher is gone for longer than a restart takes', async (t) => {
  const name = new Name();
  const last = name.inConflict();
  name.publisher.remove(ROBOT.participant, last);
  name.take(RIVAL, last + REPLACE_SECONDS);
  t.same(name.delivered, []);
  name.take(RIVAL, last + REPLACE_SECONDS + 1);
  t.same(name.delivered, [`b1 ${last + REPLACE_SECONDS + 1}`]);
  t.equal(name.take(ROBOT, last + REPLACE_SECONDS + 2), 'accepted', 'and gives it back');
});

t.test('a robot that returns to its address gets its name back from one that took it meanwhile', async (t) => {
  const name = new Name();
  name.take(ROBOT, 0);
  name.publisher.remove(ROBOT.participant, 1);
  name.take(RIVAL, 2);
  t.equal(name.take(RIVAL, 3), 'accepted');
  t.equal(name.take(RESTARTED, 60), 'accepted');
  t.equal(name.take(RIVAL, 61), 'held');

  const moved = new Name();
  moved.take(ROBOT, 0);
  moved.publisher.remove(ROBOT.participant, 1);
  for (let at = 2; at < 3700; at += 1) moved.take(RIVAL, at);
  t.equal(moved.publisher.home, RIVAL.address);
  t.equal(moved.take(RESTARTED, 3700), 'held', 'after an hour the new address is its own');
});

t.test('after a restart of the observer, the publisher is expected at its address for a while', async (t) => {
  const START = 1000;
  const restored = (hasLeft = false): Name => {
    const name = new Name();
    name.publisher.restore(ROBOT.address, START + 10, hasLeft);
    return name;
  };
  const back = restored();
  t.equal(back.take(RIVAL, START), 'held');
  t.ok(back.publisher.isNode(ROBOT));
  t.equal(back.take(RESTARTED, START + 9), 'accepted', 'whatever its participant is');
  t.equal(back.take(RIVAL, START + 9.5), 'held');

  const moved = restored();
  for (let at = START; at <= START + 10 + SILENT_SECONDS + 1; at += 1) moved.take(RIVAL, at);
  t.same(moved.delivered.at(0), `b1 ${START}`);
  t.same(moved.publisher.conflict(START + 20), []);

  const left = restored(true);
  left.take(RIVAL, START);
  t.same(left.delivered, [`b1 ${START}`]);
});

t.test('the conflict ends when the rival leaves or is not received any more', async (t) => {
  const left = new Name();
  const last = left.inConflict();
  t.notOk(left.publisher.remove(RIVAL.participant, last), 'the node itself has not left');
  t.same(left.publisher.conflict(last), []);
  const vanished = new Name();
  vanished.inConflict();
  t.equal(vanished.publisher.conflict(last + REPLACE_SECONDS - 1).length, 2);
  t.same(vanished.publisher.conflict(last + REPLACE_SECONDS + 1), []);
});

t.test('two processes of one host are in conflict as well', async (t) => {
  const name = new Name();
  for (let at = 0; at <= CONFLICT_SECONDS + 1; at += 1) {
    name.take(ROBOT, at);
    name.take(RESTARTED, at + 0.5);
  }
  t.same(name.publisher.conflict(CONFLICT_SECONDS + 1), [ROBOT.address, ROBOT.address]);
  t.notOk(name.publisher.isNode(RESTARTED));
  t.ok(name.publisher.isRival(RESTARTED));
});

t.test('another path of the same statuses is no rival, whichever is faster', async (t) => {
  const name = new Name();
  for (let at = 0; at < 30; at += 1) {
    const stamp = { ms: at, print: 1 };
    if (at % 2 === 0) {
      t.equal(name.take(ROBOT, at, { stamp }), 'accepted');
      t.equal(name.take(RIVAL, at + 0.1, { stamp, isKnown: true }), 'copy');
    } else {
      name.take(RIVAL, at, { stamp });
      t.equal(name.take(ROBOT, at + 0.1, { stamp }), 'accepted');
    }
  }
  t.same([name.publisher.conflict(30), name.delivered], [[], []]);
});

t.test('a successor that repeats the last status of a node counts once the former publisher is gone', async (t) => {
  const name = new Name();
  const stamp = { ms: 0, print: 1 };
  name.take(ROBOT, 0, { stamp });
  t.equal(name.take(RESTARTED, 1, { stamp, isKnown: true }), 'copy');
  name.take(RESTARTED, SILENT_SECONDS + 1, { stamp, isKnown: true });
  t.same(name.delivered, [`a2 ${SILENT_SECONDS + 1}`]);
});

t.test('many other hosts do not keep out a restarted robot', async (t) => {
  const name = new Name();
  for (let at = 0; at < 20; at += 1) {
    name.take(ROBOT, at);
    for (let host = 10; host < 20; host += 1) name.take({ participant: `c${host}`, address: `10.0.0.${host}` }, at + 0.5);
  }
  t.ok(name.publisher.conflict(20).length <= 5, 'bounded');
  name.publisher.remove(ROBOT.participant, 20);
  name.take(RESTARTED, 21);
  t.same(name.delivered, ['a2 21']);
});

t.test('what is held back is bounded', async (t) => {
  const name = new Name();
  name.publisher.takeStatus(ROBOT, { ms: 0, print: 0 }, false, 0, 1000, () => undefined);
  let delivered = 0;
  for (let i = 1; i < 100; i += 1)
    name.publisher.takeStatus(RESTARTED, { ms: i, print: 0 }, false, i / 100, 1000, () => {
      delivered += 1;
    });
  name.publisher.remove(ROBOT.participant, 1);
  t.equal(delivered, 32);
});

t.test('who is the node: the participant or the host of its statuses', async (t) => {
  const { publisher } = new Name();
  t.notOk(publisher.isNode(ROBOT), 'not known yet');
  const name = new Name();
  name.take(ROBOT, 0);
  t.ok(name.publisher.isNode({ ...ROBOT, address: '10.0.0.9' }), 'with a changed address');
  t.ok(name.publisher.isNode(RESTARTED));
  t.notOk(name.publisher.isNode(RIVAL));
  t.notOk(name.publisher.isRival(RIVAL), 'one that only observes');
  let delivered = 0;
  name.publisher.holdBack(RIVAL, 1, () => {
    delivered += 1;
  });
  name.publisher.succeed(100, SILENT_SECONDS);
  t.equal(delivered, 0, 'without a status of its own it does not succeed the node');
  name.take(RIVAL, 10);
  t.equal(delivered, 1);
});
