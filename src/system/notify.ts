import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../core/ports.ts';
import type { ServiceManager } from '../core/supervision.ts';
import { openLibc } from './libc.ts';

/** What of npm's sd-notify is used. */
interface SdNotify {
  sendState(state: string): void;
}

const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
/** sun_path of unix(7), with the zero at its end. */
const MAX_PATH_BYTES = 108;

/**
 * The service manager that NOTIFY_SOCKET names, or null: nobody listens, or there is no way to it, which is logged. npm's sd-notify speaks
 * to it where its addon was compiled; else the system's C library does.
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
    log('warning', 'the service manager cannot be notified', { sd_notify: problem, libc: (error as Error).message });
    return null;
  }
}

/**
 * sd_notify(3) takes a socket each time, and nobody learns when there was no descriptor for one: the watchdog would end a service that is
 * well. A descriptor is held in reserve for it.
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
    return null; // Taken by somebody else just now; the next time there may be one.
  }
}

/** sd_notify(3) is one datagram to a socket; Node has none of that kind, the C library has. Needs node:ffi. */
function throughLibc(path: string): ServiceManager {
  const length = Buffer.byteLength(path);
  if (!/^[/@]/.test(path) || length >= MAX_PATH_BYTES) throw new Error(`NOTIFY_SOCKET is not the path of a socket: ${path}`);
  const libc = openLibc({
    socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
    sendto: { arguments: ['i32', 'buffer', 'u64', 'i32', 'buffer', 'u32'], return: 'i64' },
  });
  const socket = libc.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  if (typeof socket !== 'number' || socket < 0) throw new Error('no socket can be made');
  const isAbstract = path.startsWith('@');
  // struct sockaddr_un: the family in the machine's byte order (little, on all that Node runs on), then the path; an abstract one starts
  // with a zero and has none at its end.
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

/** How long this process may be silent before its service manager ends it; null: for ever. As sd_watchdog_enabled(3) finds out. */
export function watchdogSeconds(environment: NodeJS.ProcessEnv, pid: number): number | null {
  const microseconds = Number(environment['WATCHDOG_USEC'] ?? 0);
  const forPid = environment['WATCHDOG_PID'];
  if (!(microseconds > 0) || (forPid !== undefined && forPid !== '' && Number(forPid) !== pid)) return null;
  return microseconds / 1e6;
}
