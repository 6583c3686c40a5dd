import { exchange } from '../core/platform/local-socket.ts';
import { printable } from '../core/text.ts';

/**
 * Socket of a helper that runs as root and stops the configured units and the machine. systemd starts it for each connection; only the
 * service's user may connect. The request is one line (`stop UNIT`, or an action), and so is the response: `ok`, or the error.
 */
export const HELPER_SOCKET = '/run/edge-health-stop.sock';

/** `absent`: there is no helper, or this user may not use it. Null: done. */
export type HelperAnswer = 'absent' | null | { readonly problem: string };

export interface HelperRequest {
  /** Never rejects. */
  readonly answer: Promise<HelperAnswer>;
  /** Closes the connection, on which the helper cancels the request. */
  close(): void;
}

const MAX_ANSWER = 1000;
const ABSENT = ['ENOENT', 'EACCES', 'EPERM'];

export function requestFromHelper(socketPath: string, request: string): HelperRequest {
  const closing = new AbortController();
  const answer = exchange(socketPath, `${request}\n`, { maxCharacters: MAX_ANSWER, signal: closing.signal }).then(
    (text): HelperAnswer => {
      const [line = ''] = text.split('\n');
      if (line === 'ok') return null;
      return {
        problem: line === '' ? `${socketPath} closed without a response; see its journal for the reason` : printable(line, MAX_ANSWER),
      };
    },
    ({ code, message }: NodeJS.ErrnoException): HelperAnswer =>
      ABSENT.includes(code ?? '') ? 'absent' : { problem: `${socketPath} cannot be reached: ${code ?? message}` },
  );
  return { answer, close: () => closing.abort() };
}
