import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Certificate } from '../../../../testkit/ops/http-receiver.ts';

export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly tls: boolean;
  readonly login: boolean;
  /** As it was received. */
  readonly content: string;
}

export const PASSWORD = 'pa ss: wörd';
/** Only Debian's own Python has Debian's packages; another one on PATH does not. */
const PYTHON = '/usr/bin/python3';

/** False: it can be used; otherwise the reason for a skip. */
export function mailServerMissing(): string | false {
  return spawnSync(PYTHON, ['-c', 'import aiosmtpd']).status === 0 ? false : 'needs the Debian package python3-aiosmtpd';
}

/** A mail server in a process of its own (aiosmtpd). */
export class MailServer {
  readonly mails: Mail[] = [];
  readonly port: number;
  readonly #process: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#process = child;
    this.port = port;
  }

  static start(mode: 'starttls' | 'tls' | 'none', certificate: Certificate): Promise<MailServer> {
    const program = join(import.meta.dirname, 'smtp-server.py');
    const child = spawn(PYTHON, [program, mode, certificate.file, certificate.keyFile], { stdio: ['pipe', 'pipe', 'pipe'] });
    let said = ''; // It also reports each connection that ends early there, as the tests make them.
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    return new Promise((resolve, reject) => {
      let server: MailServer | null = null;
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
        if (server) {
          const mail = JSON.parse(line) as Mail;
          server.mails.push({ ...mail, content: Buffer.from(mail.content, 'base64').toString('utf8') });
        } else {
          server = new MailServer(child, Number(line));
          resolve(server);
        }
      });
      child.once('exit', (code) => reject(new Error(`the mail server ended with ${code}: ${said}`)));
    });
  }

  /** It ends when its input is closed. */
  stop(): void {
    this.#process.stdin?.end();
    this.#process.kill();
  }
}
