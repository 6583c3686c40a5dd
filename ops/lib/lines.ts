import { createReadStream } from 'node:fs';

/** What is longer is no line of ours but damage; it is passed over and told, and does not fill memory. */
const MAX_LINE_CHARACTERS = 1_000_000;
const BLOCK_BYTES = 65_536;

export interface ReadLines {
  /** The byte to begin at; a line begins there. */
  readonly start?: number;
  /** Called for what is no whole line: a torn end, or a stretch without an end of a line. */
  readonly torn?: (characters: number) => void;
  readonly signal?: AbortSignal;
}

/** A file's whole lines in batches, without their ends. */
export async function* linesOf(file: string, { signal, start = 0, torn = () => undefined }: ReadLines = {}): AsyncGenerator<string[]> {
  let rest = '';
  let passedOver = 0;
  const stream = createReadStream(file, { encoding: 'utf8', highWaterMark: BLOCK_BYTES, start, ...(signal ? { signal } : {}) });
  for await (const block of stream as AsyncIterable<string>) {
    const lines = (rest + block).split('\n');
    rest = lines.pop() ?? '';
    if (passedOver > 0 && lines.length > 0) {
      torn(passedOver + (lines.shift() ?? '').length);
      passedOver = 0;
    }
    if (rest.length > MAX_LINE_CHARACTERS) {
      passedOver += rest.length;
      rest = '';
    }
    if (lines.length > 0) yield lines;
  }
  if (passedOver + rest.length > 0) torn(passedOver + rest.length);
}
