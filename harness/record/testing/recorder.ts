/** Records minutes as fast as it can until it is killed: `recorder.ts FOLDER`. Prints "entries N" once those entries are on the disk. */
import { existsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { RECORD_FILE } from '../entries.ts';
import { RecordWriter } from '../writer.ts';
import { begin, clocksAt, minute, resume } from './entries.ts';

const folder = process.argv[2] as string;
const isNew = !existsSync(join(folder, RECORD_FILE));
const writer = isNew ? RecordWriter.create(folder, begin()) : RecordWriter.open(folder, () => clocksAt(60)).writer;
if (!isNew) writer.append(resume(60));
for (let n = 1; ; n += 1) {
  // The longer a line, the more likely it is cut off.
  writer.append({ type: 'note', ...clocksAt(n * 60), text: 'x'.repeat((n * 7919) % 30_000) }, minute(n, n % 900));
  if (writer.problem) throw new Error(writer.problem);
  writeSync(1, `entries ${writer.entries}\n`);
}
