import { read } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { SNAPSHOT_HEADER, type Snapshot, SnapshotRefused } from '../../core/snapshot.ts';
import { isoUtc } from '../../core/time/time.ts';
import { type Handler, isForThisMachine, waitForDrain } from '../context.ts';
import { Problem, type ProblemCode } from '../problem.ts';

/** Larger than the buffer of a response, so that each write waits for the client to read, after which the chunk can be reused. */
const PIECE_BYTES = 128 * 1024;
/** Timeout of a download. The copy takes disk space until the client has read it. */
const READ_SECONDS = 3600;

const CODES: Readonly<Record<SnapshotRefused['why'], ProblemCode>> = {
  busy: 'snapshot_in_progress',
  no_space: 'insufficient_storage',
  unavailable: 'storage_unavailable',
};

/** GET /snapshot: a copy of the database. `hasToken`: a token is configured, and the client has sent it. */
export function snapshot(hasToken: () => boolean): Handler {
  return async ({ request, response, view }) => {
    if (!hasToken()) checkLocal(request);
    if (request.method === 'HEAD') {
      response.writeHead(200, { 'Content-Type': 'application/vnd.sqlite3', 'Cache-Control': 'no-store' });
      response.end();
      return;
    }
    const disconnected = new AbortController();
    const abort = (): void => disconnected.abort();
    response.once('close', abort);
    let taken: Snapshot;
    try {
      taken = await view.history.snapshot(disconnected.signal);
    } catch (error) {
      if (disconnected.signal.aborted) return;
      throw error instanceof SnapshotRefused ? new Problem(CODES[error.why], error.message) : error;
    } finally {
      response.off('close', abort);
    }
    await send(response, taken);
  };
}

/** A copy writes the whole database to flash. Without a token, remote clients and web pages in a browser on this machine are refused. */
function checkLocal(request: IncomingMessage): void {
  const { headers } = request;
  const isOfPage = headers.origin !== undefined || /^(cross|same)-site$/.test(String(headers['sec-fetch-site']));
  if (!isForThisMachine(request) || isOfPage)
    throw new Problem(
      'not_local',
      'send the request from the machine itself, not through a proxy or a web page; or set rest.token_file and send the token',
    );
  // Browsers omit Sec-Fetch-Site for plain-HTTP addresses, and Origin for images. A page cannot send this header without a CORS preflight.
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
      // Closed before the last write, so that a client that has read everything can request the next snapshot at once.
      if (offset >= sizeBytes) end();
      response.write(piece.subarray(0, length));
      await waitForDrain(response);
    }
    response.end();
  } finally {
    clearTimeout(timer);
    end();
  }
}

/** Resolves with the number of bytes read. Rejects at the end of the file, because the file is then shorter than Content-Length. */
function readAt(descriptor: number, piece: Buffer, offset: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(descriptor, piece, 0, piece.length, offset, (error, length) => {
      if (error || length === 0) reject(error ?? new Error('the snapshot file is shorter than expected'));
      else resolve(length);
    });
  });
}
