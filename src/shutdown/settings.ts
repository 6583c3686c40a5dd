import { BlockList, isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '../config/schema.ts';
import type { ShutdownAction } from '../core/shutdown/shutdown.ts';

/** The configuration of a safe shutdown. */
export interface ShutdownSettings {
  readonly enabled: boolean;
  readonly action: ShutdownAction;
  readonly allowFrom: readonly string[];
  readonly allowGroups: readonly string[];
  readonly allowUsers: readonly string[];
  readonly trustNetwork: boolean;
  readonly maxRequestsPerMinute: number;
  readonly hooksFolder: string;
  /** Whether the folder is set in the configuration and must therefore exist. */
  readonly hooksRequired: boolean;
  readonly stopUnits: readonly string[];
}

/** `standardAction`: the last step's action if the configuration does not set one. */
export function shutdownSettings(config: Config, configFile: string, standardAction: ShutdownAction): ShutdownSettings {
  const { action, allow_from, allow_groups, allow_users, enabled, hooks_path, max_requests_per_minute, stop_units, trust_network } =
    config.safe_shutdown;
  return {
    enabled,
    action: action ?? standardAction,
    allowFrom: allow_from,
    allowGroups: allow_groups,
    allowUsers: allow_users,
    trustNetwork: trust_network,
    maxRequestsPerMinute: max_requests_per_minute,
    hooksFolder: hooks_path === null ? join(dirname(resolve(configFile)), 'shutdown.d') : resolve(hooks_path),
    hooksRequired: hooks_path !== null,
    stopUnits: stop_units,
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
