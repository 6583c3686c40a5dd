import type { DatabaseSync } from 'node:sqlite';

/** Ids of the nodes with samples in the database, and whether each node is remote. */
export class NodeTable {
  readonly #localNode: string;
  #db: DatabaseSync;
  #ids = new Map<string, number>();
  readonly #remote = new Set<string>();
  /** Nodes without a row yet whose samples are to be written. */
  readonly #stored = new Set<string>();

  /** Nodes other than `localNode` are remote. */
  constructor(db: DatabaseSync, localNode: string) {
    this.#db = db;
    this.#localNode = localNode;
  }

  /** Switches to another database, which counts as empty until load(). */
  replace(db: DatabaseSync): void {
    this.#db = db;
    this.#ids = new Map();
  }

  /** Loads the rows; also after a rollback, which removes the ids assigned in that transaction. */
  load(): void {
    const rows = this.#db.prepare('SELECT id, name, remote FROM node').all() as { id: number; name: string; remote: number }[];
    this.#ids = new Map(rows.map(({ id, name }) => [name, id]));
    this.#remote.clear();
    for (const { name, remote } of rows) if (remote !== 0) this.#remote.add(name);
  }

  get ids(): ReadonlyMap<string, number> {
    return this.#ids;
  }

  /** Null: the node has no samples in the database. */
  find(node: string): number | null {
    return this.#ids.get(node) ?? null;
  }

  /** Enables writing of the node's samples. */
  markStored(node: string): void {
    this.#stored.add(node);
  }

  /** Whether the node's samples are written: false for a newcomer without stored samples. */
  isStored(node: string): boolean {
    return !this.#isRemote(node) || this.#ids.has(node) || this.#stored.has(node);
  }

  /** Inserts the node if it has no row yet. */
  idOf(node: string): number {
    const known = this.#ids.get(node);
    const isRemote = this.#isRemote(node);
    // A machine may take over the name of another one.
    if (known !== undefined && this.#remote.has(node) === isRemote) return known;
    this.#db
      .prepare('INSERT INTO node (name, remote) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET remote = excluded.remote')
      .run(node, isRemote ? 1 : 0);
    if (isRemote) this.#remote.add(node);
    else this.#remote.delete(node);
    const { id } = this.#db.prepare('SELECT id FROM node WHERE name = ?').get(node) as { id: number };
    this.#ids.set(node, id);
    return id;
  }

  /** The remote ones of the nodes in the database and of `others`. */
  remoteNodes(others: readonly string[]): Set<string> {
    return new Set([...this.#remote, ...others].filter((node) => this.#isRemote(node)));
  }

  #isRemote(node: string): boolean {
    return node !== this.#localNode;
  }
}
