import { connect } from 'node:net';
import { printable } from '../core/text.ts';

/**
 * A helper of root's that stops the units which its configuration names, and the machine: systemd starts it for each connection to
 * this socket, which belongs to the service's user alone. One line is asked (`stop UNIT`, or an action), one is answered: `ok`, or what
 * went wrong.
 */
export const HELPER_SOCKET = '/run/edge-health-stop.sock';

/** `absent`: there is no helper, or it is not for this user. Null: done. */
export type HelperAnswer = 'absent' | null | { readonly problem: string };

export interface Asked {
  /** Never rejects. */
  readonly answer: Promise<HelperAnswer>;
  /** Gives up waiting, which tells the helper to do so as well. */
  close(): void;
}

const MAX_ANSWER = 1000;
const ABSENT = ['ENOENT', 'EACCES', 'EPERM'];

export function askHelper(socketPath: string, request: string): Asked {
  const socket = connect(socketPath);
  socket.setEncoding('utf8');
  const answer = new Promise<HelperAnswer>((resolve) => {
    let text = '';
    socket.once('connect', () => socket.write(`${request}\n`));
    socket.on('data', (part: string) => {
      text = (text + part).slice(0, MAX_ANSWER);
      if (text.includes('\n')) socket.destroy();
    });
    socket.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      resolve(ABSENT.includes(code ?? '') ? 'absent' : { problem: `${socketPath} cannot be asked: ${code ?? message}` });
    });
    socket.once('close', () => {
      const [line = ''] = text.split('\n');
      if (line === 'ok') resolve(null);
      else resolve({ problem: line === '' ? `${socketPath} closed without an answer; its journal says why` : printable(line, MAX_ANSWER) });
    });
  });
  return { answer, close: () => socket.destroy() };
}
