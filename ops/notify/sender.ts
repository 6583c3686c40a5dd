import { readFile } from 'node:fs/promises';
import type { Message } from './message.ts';
import type { ChannelName, Result } from './queue.ts';

/** A way to somebody: one attempt at a time, over within its own deadline or when aborted. It never rejects. */
export interface Sender {
  readonly name: ChannelName;
  /** Where it goes, for people; without what may be secret. */
  readonly target: string;
  send(message: Message, signal: AbortSignal): Promise<Result>;
}

/** What is wrong with what an operator gave; it is tried again, since it may be put right. */
export class Unusable extends Error {}

/** A file of the configuration, read each time: a new token counts at once. */
export async function configured(key: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const remedy =
      code === 'EACCES'
        ? `let the user of the scheduler read it: chgrp edge-health ${file}; chmod 640 ${file}`
        : 'correct the key or make the file';
    throw new Unusable(`${key}: ${file} cannot be read (${code}); ${remedy}`);
  }
}

/** By what Node says: who uses its sockets may have put a code of his own in place of theirs. */
const UNTRUSTED = /self.signed certificate|unable to (verify|get (local )?issuer)/i;
const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused: is the server running, and the port right?',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'the name is not known: check it, and the name server',
  EAI_AGAIN: 'the name cannot be looked up: is the network up?',
  ENETUNREACH: 'the network cannot be reached',
  EHOSTUNREACH: 'the machine cannot be reached',
  ETIMEDOUT: 'no answer in time',
  CERT_HAS_EXPIRED: "its certificate has expired; or is this machine's clock wrong?",
  CERT_NOT_YET_VALID: "its certificate is not valid yet; or is this machine's clock wrong?",
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

/** What went wrong on the way, with what to do. `caKey` is the key that names an authority. */
export function troubleOf(error: unknown, caKey: string): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (UNTRUSTED.test(message)) {
    return `its certificate is of nobody who is trusted (${message.split(';', 1)[0]}); if it is yours, name it or its authority's in ${caKey}`;
  }
  return NETWORK[code] ?? message;
}

/** A signal that is aborted with another, and at a deadline; `done` ends the waiting. */
export function withDeadline(signal: AbortSignal, seconds: number): { readonly signal: AbortSignal; readonly done: () => void } {
  const own = new AbortController();
  const abort = (): void => own.abort(signal.reason ?? new Error('ended'));
  const timer = setTimeout(() => own.abort(new Error(`no answer within ${seconds} s`)), seconds * 1000);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return {
    signal: own.signal,
    done: () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    },
  };
}
