import { readRegularFile } from '../../../src/core/files/regular-file.ts';
import type { Message } from '../message.ts';

/** A token, a template or the certificates of an authority. */
const MAX_BYTES = 1024 * 1024;

export const CHANNEL_NAMES = ['webhook', 'command', 'email'] as const;
export type ChannelName = (typeof CHANNEL_NAMES)[number];

/** The outcome of an attempt; `afterMs` is the wait that the receiver requested. */
export type Result =
  | { readonly kind: 'delivered'; readonly detail: string }
  | { readonly kind: 'retry'; readonly detail: string; readonly afterMs?: number }
  | { readonly kind: 'final'; readonly detail: string };

/** Sends to one receiver, one attempt at a time, each with its own timeout. */
export interface Channel {
  readonly name: ChannelName;
  /** The receiver for display, without secrets. */
  readonly target: string;
  /** Never rejects. */
  send(message: Message, signal: AbortSignal): Promise<Result>;
}

/** A mistake in the configuration or its files. The notification is retried, because the mistake may be corrected. */
export class Unusable extends Error {}

/**
 * Reads a file that the configuration names. It is read again for each notification, so that a new token takes effect at once.
 * Null if no file is named.
 */
export async function configured(key: string, file: string | null): Promise<string | null> {
  if (file === null) return null;
  try {
    return (await readRegularFile(file, MAX_BYTES)).toString();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const remedy =
      code === 'EACCES'
        ? `make it readable for the user of the scheduler: chgrp edge-health ${file}; chmod 640 ${file}`
        : 'correct the key or make the file';
    throw new Unusable(`${key}: ${file} cannot be read (${code ?? message}); ${remedy}`);
  }
}

/** Errors are matched by message, because nodemailer replaces the error codes of its sockets. */
const UNTRUSTED = /self.signed certificate|unable to (verify|get (local )?issuer)/i;
const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: is the server running, and the port right?',
  ECONNRESET: 'connection reset',
  EPIPE: 'connection reset',
  ENOTFOUND: 'unknown host name: check the name and the DNS server',
  EAI_AGAIN: 'host name not resolved: is the network up?',
  ENETUNREACH: 'network unreachable',
  EHOSTUNREACH: 'host unreachable',
  ETIMEDOUT: 'no response in time',
  CERT_HAS_EXPIRED: "its certificate has expired; or is this machine's clock wrong?",
  CERT_NOT_YET_VALID: "its certificate is not valid yet; or is this machine's clock wrong?",
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
};

/** Describes a failed connection and the remedy. `caKey` is the configuration key of the certificate authority. */
export function networkProblem(error: unknown, caKey: string): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (UNTRUSTED.test(message)) {
    return `its certificate is not trusted (${message.split(';', 1)[0]}); for a certificate of your own, name it or its authority's in ${caKey}`;
  }
  return NETWORK[code] ?? message;
}

/** Makes an attempt with a signal that also aborts after a timeout. After the attempt has ended, its signal no longer aborts. */
export async function withTimeout(
  signal: AbortSignal,
  seconds: number,
  attempt: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  if (signal.aborted) return { kind: 'retry', detail: (signal.reason as Error).message };
  const limited = new AbortController();
  const abort = (): void => limited.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const timer = setTimeout(() => limited.abort(new Error(`no response within ${seconds} s`)), seconds * 1000);
  try {
    return await attempt(limited.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
