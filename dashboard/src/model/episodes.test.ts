import t from 'tap';
import type { Alert } from '../types.ts';
import { type Episode, type EpisodeFilter, episodesOf, inOrder, matches } from './episodes.ts';

const change = (id: string, seconds: number, more: Partial<Alert> = {}): Alert => ({
  alert_id: `arm/cpu_percent/${id}`,
  severity: 'WARNING',
  metric: 'cpu_percent',
  value: 85,
  threshold: 80,
  timestamp: new Date(seconds * 1000).toISOString(),
  resolved: false,
  ...more,
});
const ALL: EpisodeFilter = { node: null, severity: null, metric: null, state: null };

t.test('the changes of one alert are one episode', async (t) => {
  const changes = [
    change('1', 10),
    change('1', 20, { severity: 'CRITICAL', value: 97, threshold: 95 }),
    change('1', 30, { value: 84 }),
    change('1', 40, { value: 70, resolved: true }),
  ];
  const [episode, ...others] = episodesOf([...changes.toReversed(), ...changes]);
  t.same(others, []);
  t.match(episode, {
    id: 'arm/cpu_percent/1',
    node: 'arm',
    severity: 'CRITICAL',
    current: 'WARNING',
    fromMs: 10_000,
    toMs: 40_000,
  });
  t.equal(episode?.changes.length, 4, 'each once, oldest first');
  t.same(
    episode?.changes.map(({ timestamp }) => Date.parse(timestamp)),
    [10_000, 20_000, 30_000, 40_000],
  );
});

t.test('a clock that was set back does not reopen an episode', async (t) => {
  const [episode] = episodesOf([change('1', 100), change('1', 50, { resolved: true })]);
  t.equal(episode?.toMs, 50_000);
});

t.test('open episodes come first, worst first; the others follow, newest first', async (t) => {
  const episodes = episodesOf([
    change('past-1', 10),
    change('past-1', 90, { resolved: true }),
    change('past-2', 20),
    change('past-2', 30, { resolved: true }),
    change('open-1', 5),
    change('open-2', 6, { severity: 'CRITICAL' }),
    change('open-3', 7),
  ]);
  t.same(
    inOrder(episodes).map(({ id }) => id.slice('arm/cpu_percent/'.length)),
    ['open-2', 'open-3', 'open-1', 'past-1', 'past-2'],
  );
});

t.test('episodes are filtered by node, severity, metric and state', async (t) => {
  const episodes = episodesOf([
    change('1', 10),
    { ...change('2', 20, { severity: 'CRITICAL', metric: 'temperature', resolved: true }), alert_id: 'leg/temperature/2' },
  ]);
  const found = (filter: Partial<EpisodeFilter>): string[] =>
    episodes.filter((episode: Episode) => matches({ ...ALL, ...filter }, episode)).map(({ id }) => id);
  t.equal(found({}).length, 2);
  t.same(found({ node: 'arm' }), ['arm/cpu_percent/1']);
  t.same(found({ severity: 'CRITICAL' }), ['leg/temperature/2']);
  t.same(found({ metric: 'temperature' }), ['leg/temperature/2']);
  t.same(found({ state: 'open' }), ['arm/cpu_percent/1']);
  t.same(found({ state: 'past' }), ['leg/temperature/2']);
  t.same(found({ state: 'open', node: 'leg' }), []);
});
