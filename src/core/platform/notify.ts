import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../ports.ts';
import type { ServiceManager } from '../supervision.ts';
import { openLibc } from './libc.ts';

/** The part of the npm package sd-notify that is used. */
interface SdNotify {
  sendState(state: string): void;
}

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
/** Size of sun_path (unix(7)), including the zero at the end. */
const MAX_PATH_BYTES = 108;

/**
 * The service manager at NOTIFY_SOCKET. Null: the variable is not set, or the socket cannot be used, which is logged. The npm package
 * sd-notify sends the messages if its addon was compiled, otherwise the C library.
 */
export function serviceManager(environment: NodeJS.ProcessEnv, sdNotifyFolder: string, log: Log): ServiceManager | null {
  const path = environment['NOTIFY_SOCKET'];
  if (!path) return null;
  let problem = `its addon is not built in ${sdNotifyFolder}`;
  try {
    if (existsSync(join(sdNotifyFolder, 'build/Release/notify.node'))) {
      const require = process.getBuiltinModule('node:module').createRequire(join(sdNotifyFolder, 'package.json'));
      const library = require(sdNotifyFolder) as SdNotify;
      return { via: 'sd-notify', notify: withReserve((state) => library.sendState(state)) };
    }
  } catch (error) {
    problem = (error as Error).message.split('\n')[0] as string;
  }
  try {
    return throughLibc(path);
  } catch (error) {
    log('warning', 'service manager not notified', { sd_notify: problem, libc: (error as Error).message });
    return null;
  }
}

/**
 * sd_notify(3) opens a socket for each message and reports no error if no file descriptor is free. The watchdog would then kill a healthy
 * service. One descriptor is therefore kept in reserve.
 */
function withReserve(send: (state: string) => void): (state: string) => void {
  let reserve = openReserve();
  return (state) => {
    if (reserve !== null) closeSync(reserve);
    try {
      send(state);
    } finally {
      reserve = openReserve();
    }
  };
}

function openReserve(): number | null {
  try {
    return openSync('/dev/null', 'r');
  } catch {
    return null; // No descriptor is free now; the next call tries again.
  }
}

/** Sends the datagrams of sd_notify(3) through the C library, because Node has no Unix datagram sockets. Needs node:ffi. */
function throughLibc(path: string): ServiceManager {
  const length = Buffer.byteLength(path);
  if (!/^[/@]/.test(path) || length >= MAX_PATH_BYTES) throw new Error(`NOTIFY_SOCKET is not the path of a socket: ${path}`);
  const libc = openLibc({
    socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
    sendto: { arguments: ['i32', 'buffer', 'u64', 'i32', 'buffer', 'u32'], return: 'i64' },
  });
  const socket = libc.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  if (typeof socket !== 'number' || socket < 0) throw new Error('no socket can be created');
  const isAbstract = path.startsWith('@');
  // struct sockaddr_un: the family in the machine's byte order (little endian on all supported machines), then the path. An abstract path
  // begins with a zero and has none at the end.
  const address = Buffer.alloc(2 + length + (isAbstract ? 0 : 1));
  address.writeUInt16LE(AF_UNIX, 0);
  address.write(isAbstract ? `\0${path.slice(1)}` : path, 2);
  return {
    via: 'libc',
    notify: (state) => {
      const message = Buffer.from(state);
      libc.sendto(socket, message, BigInt(message.length), 0, address, address.length);
    },
  };
}

/** The watchdog timeout of this process, determined as by sd_watchdog_enabled(3); null: no watchdog. */
export function watchdogSeconds(environment: NodeJS.ProcessEnv, pid: number): number | null {
  const microseconds = Number(environment['WATCHDOG_USEC'] ?? 0);
  const forPid = environment['WATCHDOG_PID'];
  if (!(microseconds > 0) || (forPid !== undefined && forPid !== '' && Number(forPid) !== pid)) return null;
  return microseconds / 1e6;
}
