import { realpathSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import { loadConfig } from '../config/load.ts';
import type { Log } from '../core/ports.ts';
import type { RunningItem } from '../core/shutdown/shutdown.ts';
import { printable } from '../core/text.ts';
import { stopMachine } from './logind.ts';
import { stopUnit } from './runners.ts';

export interface StopHelperOptions {
  readonly connection: Duplex;
  readonly configFile: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly log: Log;
  /** Owner of the configuration that is trusted besides root. */
  readonly uid: number;
  /** Time limit for a response from systemd-logind. */
  readonly answerSeconds?: number;
}

const MAX_REQUEST = 300;
const REQUEST_SECONDS = 5;
const SHOWN_CHARACTERS = 80;
const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * Root's helper for actions that the service may not perform itself: stops one unit, if the configuration lists it, or the machine, which
 * polkit allows the service as well. Handles one request and ends when it is done or the peer disconnects. Never rejects.
 */
export async function helpToStop(options: StopHelperOptions): Promise<void> {
  const { connection, log } = options;
  const disconnected = new Promise<null>((resolve) => {
    for (const event of ['end', 'close', 'error']) connection.once(event, () => resolve(null));
  });
  const request = await Promise.race([requestOf(connection), disconnected]);
  if (request === null) return;
  const problem = await carryOut(request, disconnected, options).catch((error: Error) => error.message);
  if (problem !== null) log('warning', 'not stopped', { request: printable(request, SHOWN_CHARACTERS), why: problem });
  if (!connection.destroyed) await new Promise<void>((resolve) => connection.end(`${problem ?? 'ok'}\n`, resolve));
}

async function carryOut(request: string, disconnected: Promise<null>, options: StopHelperOptions): Promise<string | null> {
  const { environment, log } = options;
  if (request === 'poweroff' || request === 'reboot' || request === 'halt') {
    log('notice', 'power action requested', { action: request });
    return stopMachine(request, environment, true, options.answerSeconds);
  }
  const unit = /^stop (.+)$/.exec(request)?.[1];
  if (unit === undefined) return 'a request is "stop UNIT", "poweroff", "reboot" or "halt"';
  const problem = mayNotStop(unit, options);
  if (problem !== null) return problem;
  log('notice', 'stopping a unit of safe_shutdown.stop_units', { unit });
  return endingWith(disconnected, stopUnit(unit, environment, log));
}

/** Waits for the unit to stop, or for the peer to disconnect; systemd stops the unit in either case. */
async function endingWith(disconnected: Promise<null>, running: RunningItem): Promise<string | null> {
  const ended = await Promise.race([running.ended, disconnected.then(() => 'the client disconnected')]);
  await running.end(0);
  return ended;
}

/** Reads one line. Empty, which is no request: the line is too long, or was not completed in time. */
function requestOf(connection: Duplex): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => resolve(''), REQUEST_SECONDS * 1000);
    connection.setEncoding('utf8');
    connection.on('data', (part: string) => {
      text = (text + part).slice(0, MAX_REQUEST);
      const end = text.indexOf('\n');
      if (end < 0 && text.length < MAX_REQUEST) return;
      clearTimeout(timer);
      resolve(end < 0 ? '' : text.slice(0, end));
    });
  });
}

/** Why a unit must not be stopped: root's own configuration does not list it. */
function mayNotStop(unit: string, { configFile, uid }: StopHelperOptions): string | null {
  const trusted = trustedPath(configFile, uid);
  if ('problem' in trusted) return trusted.problem;
  const loaded = loadConfig(trusted.path);
  if (!loaded.ok) return `${configFile} has errors; see: edge-health check-config`;
  if (loaded.config.safe_shutdown.stop_units.includes(unit)) return null;
  return `${printable(unit, SHOWN_CHARACTERS)} is not in safe_shutdown.stop_units of ${configFile}`;
}

/**
 * The path of a file without symbolic links, or why it is not trusted: write access to the file or its folders allows changing its contents,
 * so only root may have it. Folders with symbolic links on the way to it are not checked, so only the returned path may be opened.
 */
export function trustedPath(
  file: string,
  uid: number,
  ownerAndMode: (path: string) => Pick<Stats, 'mode' | 'uid'> = statSync,
): { readonly path: string } | { readonly problem: string } {
  let real: string;
  try {
    real = realpathSync(file);
  } catch (error) {
    return { problem: `${file} cannot be read: ${(error as NodeJS.ErrnoException).code}` };
  }
  let path = real;
  for (let isFile = true; ; isFile = false) {
    const { mode, uid: owner } = ownerAndMode(path);
    if (owner !== 0 && owner !== uid) return { problem: `${path} is not owned by root; run: chown root ${path}` };
    const isOpen = (mode & WRITABLE_BY_OTHERS) !== 0 && (isFile || (mode & STICKY) === 0);
    if (isOpen) return { problem: `users other than root can write ${path}; run: chmod go-w ${path}` };
    if (path === dirname(path)) return { path: real };
    path = dirname(path);
  }
}
