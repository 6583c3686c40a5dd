import { BlockList, isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '../config/schema.ts';
import type { ShutdownAction } from '../core/shutdown/shutdown.ts';

/** The configuration of a safe shutdown: its keys, with the values that depend on the machine and on the file filled in. */
export interface ShutdownSettings extends Omit<Config['safe_shutdown'], 'action' | 'hooks_path'> {
  readonly action: ShutdownAction;
  readonly hooksFolder: string;
  /** Whether the folder is set in the configuration and must therefore exist. */
  readonly hooksRequired: boolean;
}

/** `standardAction`: the last step's action if the configuration does not set one. */
export function shutdownSettings(config: Config, configFile: string, standardAction: ShutdownAction): ShutdownSettings {
  const { action, hooks_path, ...keys } = config.safe_shutdown;
  return {
    ...keys,
    action: action ?? standardAction,
    hooksFolder: hooks_path === null ? join(dirname(resolve(configFile)), 'shutdown.d') : resolve(hooks_path),
    hooksRequired: hooks_path !== null,
  };
}

type Family = 'ipv4' | 'ipv6';

const familyOf = (address: string): Family | null => {
  const version = isIP(address);
  return version === 0 ? null : version === 4 ? 'ipv4' : 'ipv6';
};

/** Why requests from a host are refused, which safe_shutdown.allow_from does not list; null: they are accepted. */
export function addressRefusal(address: string, allowed: readonly string[]): string | null {
  const list = new BlockList();
  for (const entry of allowed) {
    const [network = '', prefix] = entry.split('/');
    const family = familyOf(network);
    if (family === null) continue; // Configuration validation rejects such an entry.
    if (prefix === undefined) list.addAddress(network, family);
    else list.addSubnet(network, Number(prefix), family);
  }
  const host = address.replace(/%.*$/, ''); // A link-local address ends with its interface.
  const family = familyOf(host);
  if (family !== null && list.check(host, family)) return null;
  return `requests from ${address} are not accepted; add the address to this machine's safe_shutdown.allow_from`;
}
