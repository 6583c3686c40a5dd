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

/** The addresses and networks of safe_shutdown.allow_from. */
export class AllowList {
  readonly #list = new BlockList();

  constructor(entries: readonly string[]) {
    for (const entry of entries) {
      const [address = '', prefix] = entry.split('/');
      const family = familyOf(address);
      if (family === null) continue; // Configuration validation rejects such an entry.
      if (prefix === undefined) this.#list.addAddress(address, family);
      else this.#list.addSubnet(address, Number(prefix), family);
    }
  }

  /** Why requests from a host are refused; null: they are accepted. */
  refusal(address: string): string | null {
    const host = address.replace(/%.*$/, ''); // A link-local address ends with its interface.
    const family = familyOf(host);
    if (family !== null && this.#list.check(host, family)) return null;
    return `requests from ${address} are not accepted; add the address to this machine's safe_shutdown.allow_from`;
  }
}
