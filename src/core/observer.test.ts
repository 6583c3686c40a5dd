import t from 'tap';
import { type Appliance, MOST_WITHOUT_ELECTION, observersOf } from './observer.ts';

const autos = (count: number): Appliance[] => Array.from({ length: count }, (_, i) => ({ name: `robot${10 + i}`, mode: 'auto' }));

t.test('few appliances observe each other, those set to always first', async (t) => {
  t.same(observersOf(autos(1)), ['robot10']);
  t.same(observersOf(autos(MOST_WITHOUT_ELECTION)), ['robot10', 'robot11', 'robot12', 'robot13']);
  t.same(observersOf([...autos(2), { name: 'teacher', mode: 'always' }]), ['teacher', 'robot10', 'robot11']);
});

t.test('of many appliances one is elected, independent of the order in which they are known', async (t) => {
  t.same(observersOf(autos(30)), ['robot10']);
  t.same(observersOf(autos(30).reverse()), ['robot10']);
  t.same(observersOf(autos(30).slice(1)), ['robot11'], 'when it is gone, the next one');
});

t.test('of many appliances none is elected if one is set to always; those set to never do not take part', async (t) => {
  t.same(observersOf([...autos(30), { name: 'teacher', mode: 'always' }]), ['teacher']);
  t.same(observersOf([...autos(4), ...autos(30).map(({ name }) => ({ name: `sensor/${name}`, mode: 'never' as const }))]).length, 4);
  t.same(observersOf([{ name: 'a', mode: 'never' }]), []);
});
