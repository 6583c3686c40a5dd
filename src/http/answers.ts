import { type AddressInfo, connect } from 'node:net';

const TIMEOUT_SECONDS = 2;
/** A server that listens on a wildcard address is tested through the loopback address. */
const LOCAL: Readonly<Record<string, string>> = { '::': '::1', '0.0.0.0': '127.0.0.1' };

/** Whether the REST server at this address responds. The test uses a real connection, as any client does. */
export function restAnswers({ address, port }: AddressInfo): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: LOCAL[address] ?? address, port });
    const end = (hasResponded: boolean): void => {
      socket.destroy();
      resolve(hasResponded);
    };
    socket.setTimeout(TIMEOUT_SECONDS * 1000, () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
    // Any HTTP status counts as a response: the server returns 401 if a token is configured.
    socket.on('data', (bytes) => end(bytes.toString('latin1').startsWith('HTTP/1.1 ')));
    socket.write('HEAD /health HTTP/1.1\r\nHost: localhost\r\nUser-Agent: edge-health\r\nConnection: close\r\n\r\n');
  });
}
