import t from 'tap';
import { VirtualTime } from '../testing/virtual-time.ts';
import { Agenda } from './outbox.ts';

t.test('fires once at its deadline, never before', async (t) => {
  const time = new VirtualTime(t, 1000);
  const due: number[] = [];
  const agenda = new Agenda(time.now, () => due.push(time.now()));
  agenda.set(1002.5);
  t.equal(agenda.dueSeconds, 1002.5);
  await time.pass(2.49);
  t.same(due, []);
  await time.pass(10);
  t.equal(due.length, 1);
  t.ok((due[0] as number) >= 1002.5 && (due[0] as number) < 1002.51, `at ${due[0]}`);
  t.equal(agenda.dueSeconds, Number.POSITIVE_INFINITY, 'not set any more');
  t.equal(time.pending, 0);
});

t.test('a new deadline replaces the former one', async (t) => {
  const time = new VirtualTime(t);
  const due: number[] = [];
  const agenda = new Agenda(time.now, () => due.push(Math.round(time.now())));
  agenda.set(5);
  agenda.set(9);
  t.equal(time.pending, 1);
  await time.pass(7);
  t.same(due, []);
  agenda.set(8);
  await time.pass(10);
  t.same(due, [8]);
});

t.test('an infinite deadline sets no timer', async (t) => {
  const time = new VirtualTime(t);
  const agenda = new Agenda(time.now, () => t.fail('was not to go off'));
  agenda.set(1);
  agenda.set(Number.POSITIVE_INFINITY);
  t.equal(time.pending, 0);
  await time.pass(5);
});

t.test('a deadline in the past fires in a later turn of the event loop', async (t) => {
  const time = new VirtualTime(t, 50);
  let times = 0;
  const agenda = new Agenda(time.now, () => {
    times += 1;
    // While work is due, there is a turn of the event loop in between.
    if (times < 3) agenda.set(10);
  });
  agenda.set(10);
  t.equal(times, 0);
  await time.pass(1);
  t.equal(times, 3);
});

t.test('does not keep the process alive', async (t) => {
  const agenda = new Agenda(
    () => performance.now() / 1000,
    () => {},
  );
  agenda.set(performance.now() / 1000 + 3600);
  t.notOk(process.getActiveResourcesInfo().includes('Timeout'), process.getActiveResourcesInfo().join(' '));
  agenda.set(Number.POSITIVE_INFINITY);
});
