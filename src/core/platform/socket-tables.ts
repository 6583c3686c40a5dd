import { exchange } from './local-socket.ts';

/**
 * Socket that returns the kernel's tables of UDP and then of TCP sockets, for a service in a user namespace, in which most users appear as
 * nobody. systemd starts `cat` for each connection (edge-health-udp.socket); only the service's user may connect.
 */
export const SOCKET_TABLES = '/run/edge-health-udp.sock';

/** The caller must get a response within a second. */
const TIMEOUT_MS = 700;
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** Ends the head of the tables of TCP, in which no `ref pointer drops` follow. Any user can make these tables long. */
const TCP_HEAD = 'inode  ';

/** The tables of UDP sockets, or of UDP and TCP sockets, with all users; empty if they cannot be read. */
export function readSocketTables(socket: string, protocols: 'udp' | 'all'): Promise<string> {
  const limits = { maxCharacters: MAX_CHARACTERS, timeoutMs: TIMEOUT_MS, ...(protocols === 'udp' && { until: TCP_HEAD }) };
  return exchange(socket, '', limits).catch(() => '');
}
