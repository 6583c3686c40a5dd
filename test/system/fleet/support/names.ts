import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { until } from '../../../../testkit/wait.ts';
import { Engine } from './engines.ts';

/** An address of the loopback network that no other program uses: Prometheus queries port 53 only. */
const ADDRESS = '127.0.53.77';

export interface Names {
  /** Host names of this machine. */
  readonly hosts: readonly string[];
  readonly srv: { readonly name: string; readonly host: string; readonly port: number };
}

/** Starts a real dnsmasq on loopback; returns the file to use as /etc/resolv.conf. */
export async function nameServer(t: Test, folder: string, { hosts, srv }: Names): Promise<string> {
  const engine = new Engine(t, 'dnsmasq', [
    '--keep-in-foreground',
    '--conf-file=/dev/null',
    '--log-facility=-',
    `--listen-address=${ADDRESS}`,
    '--bind-interfaces',
    '--no-resolv',
    '--no-hosts',
    `--pid-file=${folder}/dnsmasq.pid`,
    ...hosts.map((host) => `--host-record=${host},127.0.0.1`),
    `--srv-host=${srv.name},${srv.host},${srv.port}`,
  ]);
  await until('dnsmasq has started or ended', () => /started, version/.test(engine.log) || engine.hasEnded, { describe: () => engine.log });
  if (engine.hasEnded) throw new Error(`dnsmasq ended:\n${engine.log}`);
  const file = join(folder, 'resolv.conf');
  writeFileSync(file, `nameserver ${ADDRESS}\n`);
  return file;
}
