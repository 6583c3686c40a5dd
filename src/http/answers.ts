import { type AddressInfo, connect } from 'node:net';

const DEADLINE_SECONDS = 2;
/** The wildcard addresses are reached through this machine's own. */
const LOCAL: Readonly<Record<string, string>> = { '::': '::1', '0.0.0.0': '127.0.0.1' };

/** Whether a server of ours answers there: asked over a real connection, as any client would. */
export function restAnswers({ address, port }: AddressInfo): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: LOCAL[address] ?? address, port });
    const end = (answered: boolean): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.setTimeout(DEADLINE_SECONDS * 1000, () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
    // Any answer will do: with a token it is 401.
    socket.on('data', (bytes) => end(bytes.toString('latin1').startsWith('HTTP/1.1 ')));
    socket.write('HEAD /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: edge-health\r\nConnection: close\r\n\r\n');
  });
}
