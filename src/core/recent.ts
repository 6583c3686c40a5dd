/** The last `size` different keys. */
export class Recent {
  readonly #size: number;
  readonly #keys = new Set<string>();

  constructor(size: number) {
    this.#size = size;
  }

  /** False: the key is remembered already. */
  add(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    if (this.#keys.size > this.#size) this.#keys.delete(this.#keys.values().next().value as string);
    return true;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }
}
