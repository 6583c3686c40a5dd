import { connect } from 'node:net';

export interface ControlAnswer {
  readonly ok: boolean;
  readonly message: string;
}

const MAX_ANSWER = 65_536;
const TIMEOUT_SECONDS = 10;

/** One request over the control socket of the running service. Rejects with the system's error code when it cannot be reached. */
export function askControlSocket(path: string, request: Readonly<Record<string, string>>): Promise<ControlAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let text = '';
    socket.setEncoding('utf8');
    socket.setTimeout(TIMEOUT_SECONDS * 1000, () => socket.destroy(new Error(`no response for ${TIMEOUT_SECONDS} s`)));
    socket.once('connect', () => socket.write(`${JSON.stringify(request)}\n`));
    socket.on('data', (part: string) => {
      text = (text + part).slice(0, MAX_ANSWER);
    });
    socket.once('error', reject);
    socket.once('end', () => {
      try {
        resolve(JSON.parse(text) as ControlAnswer);
      } catch {
        reject(new Error('the service closed the connection without a response'));
      }
    });
  });
}
