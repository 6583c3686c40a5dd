type Labels = Readonly<Record<string, string>>;

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

/**
 * Renders the Prometheus text format, version 0.0.4. prom-client is not used because it takes 6 MB of resident memory after the first
 * scrape. promtool checks the output in the tests.
 */
export class Exposition {
  static readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';
  #text = '';

  /** Adds a metric family with its series. Null values and families without any series are omitted. */
  family(name: string, type: 'gauge' | 'counter', help: string, series: readonly (readonly [Labels, number | null])[]): void {
    const known = series.filter(([, value]) => value !== null);
    if (known.length === 0) return;
    this.#text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
    for (const [labels, value] of known) this.#text += `${name}${labelText(labels)} ${value}\n`;
  }

  toString(): string {
    return this.#text;
  }
}
