import { openLibc } from '../core/platform/libc.ts';
import type { SocketBounds } from '../core/ports.ts';

/** socket(7) and tcp(7); the same on every architecture supported by Node. */
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const IPPROTO_TCP = 6;
const TCP_USER_TIMEOUT = 18;
const SO_PEERCRED = 17;

/**
 * Bounds the kernel's buffers of each connection of a listening socket. Otherwise they can take megabytes, which count as this process's
 * memory. Connections inherit the options of the listening socket. False: not possible without node:ffi; the kernel's defaults apply.
 */
export function boundSockets(descriptor: number, { receiveBytes, sendBytes, unreadSeconds }: SocketBounds): boolean {
  try {
    const { setsockopt } = openLibc({ setsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' } });
    const set = (level: number, option: number, value: number): boolean =>
      setsockopt(descriptor, level, option, Buffer.from(Int32Array.of(value).buffer), 4) === 0;
    const done = [
      set(SOL_SOCKET, SO_SNDBUF, sendBytes),
      set(SOL_SOCKET, SO_RCVBUF, receiveBytes),
      set(IPPROTO_TCP, TCP_USER_TIMEOUT, unreadSeconds * 1000),
    ];
    return done.every((isSet) => isSet);
  } catch {
    return false;
  }
}

/** The id of the user at the other end of a Unix connection, when it was opened (unix(7)); null: not possible without node:ffi. */
export function peerUser(descriptor: number): number | null {
  try {
    const { getsockopt } = openLibc({ getsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'buffer'], return: 'i32' } });
    const processUserGroup = Buffer.alloc(12);
    const length = Buffer.from(Int32Array.of(processUserGroup.length).buffer);
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, processUserGroup, length) === 0 ? processUserGroup.readInt32LE(4) >>> 0 : null;
  } catch {
    return null;
  }
}
