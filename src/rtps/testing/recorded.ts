import { readdirSync, readFileSync } from 'node:fs';
import { inflateRawSync } from 'node:zlib';

/** Recorded traffic of real implementations: JSON lines files with a header that contains the scene and the implementation. */
const FOLDER = new URL('recorded/', import.meta.url);

export interface Recorded {
  /** The file, such as cyclone-topic; the scenes are described in test/fuzz/rtps/record.ts. */
  readonly scene: string;
  /** Cyclone DDS 0.10.2, Fast DDS 2.9.1, or ROS 2 with its middleware. */
  readonly implementation: string;
  readonly from: string;
  readonly to: string;
  readonly port: number;
  readonly datagram: Buffer;
}

interface Line {
  readonly from: string;
  readonly to: string;
  readonly port: number;
  /** Base64; one of the two. */
  readonly octets?: string;
  readonly deflated?: string;
}

/** The scenes whose names match, sorted by name, each in the order of reception. Throws when there are none. */
export function recorded(scenes = /./): Recorded[] {
  const files = readdirSync(FOLDER).filter((file) => scenes.test(file.replace('.jsonl', '')));
  if (files.length === 0) throw new Error(`no recorded scene matches ${scenes}`);
  return files.sort().flatMap((file) => {
    const [head = '', ...lines] = readFileSync(new URL(file, FOLDER), 'utf8').trim().split('\n');
    const { scene, implementation } = JSON.parse(head) as { scene: string; implementation: string };
    return lines.map((line) => {
      const { from, to, port, octets, deflated } = JSON.parse(line) as Line;
      const datagram = octets === undefined ? inflateRawSync(Buffer.from(deflated ?? '', 'base64')) : Buffer.from(octets, 'base64');
      return { scene, implementation, from, to, port, datagram };
    });
  });
}
