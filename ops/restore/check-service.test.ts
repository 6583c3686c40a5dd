import t from 'tap';
import { RestClient } from '../../src/client/rest.ts';
import type { DatabaseCounts } from '../backup/manifest.ts';
import { checkService } from './check-service.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-03-04T12:00:00Z');

/** A service as it responds after a restore. */
class Answers extends RestClient {
  readonly #state: string;
  readonly #quarantined: readonly string[];
  readonly #found: Readonly<Record<string, number>>;

  constructor(found: Readonly<Record<string, number>>, state = 'ok', quarantined: readonly string[] = []) {
    super({ base: 'http://127.0.0.1:9', token: null });
    this.#found = found;
    this.#state = state;
    this.#quarantined = quarantined;
  }

  override async json<T>(path: string): Promise<T> {
    if (path === '/status') return { storage: { state: this.#state, error: 'no space', quarantined: this.#quarantined } } as T;
    const node = new URL(path, 'http://x').searchParams.get('node') ?? '';
    return { samples_received: this.#found[node] ?? 0 } as T;
  }
}

function backup(nodes: readonly (readonly [string, number, number, number])[]): DatabaseCounts {
  const iso = (days: number): string => new Date(NOW - days * DAY_MS).toISOString();
  return {
    source: 'service',
    schema_version: 2,
    nodes: nodes.map(([node, samples, first, last]) => ({ node, samples, first: iso(first), last: iso(last) })),
    samples: 0,
    episodes: 0,
    open_episodes: 0,
    alert_changes: 0,
  };
}

const options = { nowMs: NOW, seconds: 0, signal: new AbortController().signal };

t.test('requires every sample of the last days', async (t) => {
  const database = backup([
    ['a', 1000, 3, 1],
    ['b', 500, 2, 1],
  ]);
  t.same(await checkService(new Answers({ a: 1000, b: 500 }), database, options), { samples: 1500 });
  await t.rejects(checkService(new Answers({ a: 1000, b: 499 }), database, options), { message: 'of 1500 samples the service finds 1499' });
});

t.test('tolerates missing ends of the averaged data of an older backup', async (t) => {
  const database = backup([['a', 1000, 30, 22]]);
  t.same(await checkService(new Answers({ a: 992 }), database, options), { samples: 992 });
  await t.rejects(checkService(new Answers({ a: 900 }), database, options), { message: /finds 900/ });
});

t.test('ignores nodes with a wrong clock, and data that is too old', async (t) => {
  const database = backup([
    ['a', 1000, 3, 1],
    ['1970', 700, 20_000, 19_999],
    ['2099', 700, -20_000, -20_001],
  ]);
  t.same(await checkService(new Answers({ a: 1000 }), database, options), { samples: 1000 });
});

t.test('rejects a storage that is not healthy', async (t) => {
  const database = backup([['a', 10, 3, 1]]);
  await t.rejects(checkService(new Answers({ a: 10 }, 'degraded'), database, options), {
    message: /not ready after 0 s: its storage is degraded: no space/,
  });
  await t.rejects(checkService(new Answers({ a: 10 }, 'ok', ['/x/edge-health.db.quarantined-1']), database, options), {
    message: /did not accept the restored database.*quarantined-1/,
  });
});
