import type { DatabaseSync } from 'node:sqlite';

/** The nodes that have samples in the database: the number each has there, and whether its samples came from elsewhere. */
export class NodeTable {
  readonly #localNode: string | null;
  #db: DatabaseSync;
  #ids = new Map<string, number>();
  /** Those whose samples came from elsewhere. */
  readonly #gathered = new Set<string>();
  /** Others of which samples are to be written. */
  readonly #kept = new Set<string>();

  /** Samples of every other node than `localNode` came from elsewhere; null: nobody needs to know. */
  constructor(db: DatabaseSync, localNode: string | null) {
    this.#db = db;
    this.#localNode = localNode;
  }

  /** Goes on with another database, which is taken to be empty until load(). */
  replace(db: DatabaseSync): void {
    this.#db = db;
    this.#ids = new Map();
  }

  /** Reads what the database has; also when a transaction was undone, with which ids given out in it are gone. */
  load(): void {
    const rows = this.#db.prepare('SELECT id, name, gathered FROM node').all() as { id: number; name: string; gathered: number }[];
    this.#ids = new Map(rows.map(({ id, name }) => [name, id]));
    this.#gathered.clear();
    for (const { name, gathered } of rows) if (gathered !== 0) this.#gathered.add(name);
  }

  /** By name. */
  get ids(): ReadonlyMap<string, number> {
    return this.#ids;
  }

  /** Null: it has no samples in the database. */
  find(node: string): number | null {
    return this.#ids.get(node) ?? null;
  }

  /** From now on its samples are written. */
  keep(node: string): void {
    this.#kept.add(node);
  }

  /** Whether samples of it are written: not those of a node that nobody vouches for and of which the database has none. */
  isKept(node: string): boolean {
    return !this.#isGathered(node) || this.#ids.has(node) || this.#kept.has(node);
  }

  /** Enters the node where it is not there yet. */
  idOf(node: string): number {
    const known = this.#ids.get(node);
    const gathered = this.#isGathered(node);
    // A name may pass from one machine to another.
    if (known !== undefined && this.#gathered.has(node) === gathered) return known;
    this.#db
      .prepare('INSERT INTO node (name, gathered) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET gathered = excluded.gathered')
      .run(node, gathered ? 1 : 0);
    if (gathered) this.#gathered.add(node);
    else this.#gathered.delete(node);
    const { id } = this.#db.prepare('SELECT id FROM node WHERE name = ?').get(node) as { id: number };
    this.#ids.set(node, id);
    return id;
  }

  /** Of the nodes in the database and of these others the ones whose samples came from elsewhere. */
  gathered(others: readonly string[]): Set<string> {
    return new Set([...this.#gathered, ...others].filter((node) => this.#isGathered(node)));
  }

  #isGathered(node: string): boolean {
    return this.#localNode !== null && node !== this.#localNode;
  }
}
