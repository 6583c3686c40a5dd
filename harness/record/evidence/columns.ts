/** Numbers that are appended one by one, eight bytes each. */
export class Column {
  #values = new Float64Array(1024);
  #length = 0;

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Float64Array(this.#length * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length++] = value;
  }

  values(): Float64Array {
    return this.#values.slice(0, this.#length);
  }

  /** NaN becomes null. */
  known(): (number | null)[] {
    return Array.from(this.values(), (value) => (Number.isNaN(value) ? null : value));
  }
}
