import { read } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SNAPSHOT_HEADER, type Snapshot, SnapshotRefused } from '../../core/snapshot.ts';
import { isoUtc } from '../../core/time.ts';
import { isForThisMachine } from '../clients.ts';
import { drained, type Handler } from '../context.ts';
import { Problem, type ProblemCode } from '../problem.ts';

/** More than a response holds before it wants to be drained: once it is, the buffer is free again. */
const PIECE_BYTES = 128 * 1024;
/** Its disk space is free again when it is read. Whoever reads slower than this is cut off. */
const READ_SECONDS = 3600;

const CODES: Readonly<Record<SnapshotRefused['why'], ProblemCode>> = {
  busy: 'snapshot_in_progress',
  no_room: 'insufficient_storage',
  unavailable: 'storage_unavailable',
};

/** GET /snapshot: a copy of the database. `hasToken`: whoever comes here has sent the token. */
export function snapshot(hasToken: () => boolean): Handler {
  return async ({ request, response, view }) => {
    if (!hasToken()) checkLocal(request);
    if (request.method === 'HEAD') {
      response.writeHead(200, { 'Content-Type': 'application/vnd.sqlite3', 'Cache-Control': 'no-store' });
      response.end();
      return;
    }
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    response.once('close', leave);
    let taken: Snapshot;
    try {
      taken = await view.history.snapshot(gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return;
      throw error instanceof SnapshotRefused ? new Problem(CODES[error.why], error.message) : error;
    } finally {
      response.off('close', leave);
    }
    await send(response, taken);
  };
}

/** A copy costs flash a writing of the whole database: not for anybody on the network, nor for a page in this machine's browser. */
function checkLocal(request: IncomingMessage): void {
  const { headers } = request;
  const isOfPage = headers.origin !== undefined || /^(cross|same)-site$/.test(String(headers['sec-fetch-site']));
  if (!isForThisMachine(request) || isOfPage)
    throw new Problem(
      'not_local',
      'ask on the machine itself, not through a proxy or a web page; or set rest.token_file and send the token',
    );
  // Browsers leave out Sec-Fetch-Site for most addresses, and Origin for images: but a page cannot send this without being asked for leave.
  if (headers[SNAPSHOT_HEADER.toLowerCase()] !== '1')
    throw new Problem('snapshot_header_missing', `send the header "${SNAPSHOT_HEADER}: 1"; or set rest.token_file and send the token`);
}

async function send(response: ServerResponse, { close, descriptor, sizeBytes, takenMs }: Snapshot): Promise<void> {
  let isOpen = true;
  const end = (): void => {
    if (isOpen) close();
    isOpen = false;
  };
  const timer = setTimeout(() => response.destroy(), READ_SECONDS * 1000);
  try {
    const name = `edge-health-${isoUtc(takenMs).replaceAll(/[-:]|\.\d+/g, '')}.db`;
    response.writeHead(200, {
      'Content-Type': 'application/vnd.sqlite3',
      'Content-Length': sizeBytes,
      'Content-Disposition': `attachment; filename="${name}"`,
      'Cache-Control': 'no-store',
    });
    const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
    for (let offset = 0; offset < sizeBytes && !response.destroyed; ) {
      const length = await readAt(descriptor, piece, offset);
      offset += length;
      // Before the end: whoever has it all may ask for the next.
      if (offset >= sizeBytes) end();
      response.write(piece.subarray(0, length));
      await drained(response);
    }
    response.end();
  } finally {
    clearTimeout(timer);
    end();
  }
}

/** Reads a piece; the bytes read. Rejects at the end of the file: it is shorter than was said. */
function readAt(descriptor: number, piece: Buffer, offset: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(descriptor, piece, 0, piece.length, offset, (error, length) => {
      if (error || length === 0) reject(error ?? new Error('the snapshot ended too early'));
      else resolve(length);
    });
  });
}
