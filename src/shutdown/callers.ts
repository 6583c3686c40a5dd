import { SOCKET_TABLES } from '../core/platform/socket-tables.ts';
import type { Log } from '../core/ports.ts';
import type { DdsCaller, ListItems, PowerControl, ShutdownCaller, ShutdownSource } from '../core/shutdown/shutdown.ts';
import type { Clocks } from '../core/time/time.ts';
import { Logind } from './logind.ts';
import { hookItems, unitItems } from './runners.ts';
import { addressRefusal, type ShutdownSettings } from './settings.ts';
import { HELPER_SOCKET } from './stop-helper-client.ts';
import { UdpOwners } from './udp-owners.ts';
import { type LocalUser, Users } from './users.ts';

/** Owners of the local UDP sockets at these ports; null: a port has no socket, or its owner is unknown. */
export type FindUsers = (ports: readonly number[]) => Promise<readonly LocalUser[] | null>;

/** Origin of a call, and why the caller may not request a shutdown; null: it may. */
export interface CallerDecision {
  readonly source: ShutdownSource;
  readonly refusal: string | null;
}

/** Decides whether a caller may request a safe shutdown. */
export async function authorizeCaller({ dds }: ShutdownCaller, settings: ShutdownSettings, findUsers: FindUsers): Promise<CallerDecision> {
  if (dds === null) return { source: { address: null, port: null, user: null }, refusal: null };
  const { address, local, port } = dds;
  if (local && settings.trust_network) return { source: { address, port, user: null }, refusal: null };
  const { refusal, user } = local
    ? await authorizeUser(dds, settings, findUsers)
    : { refusal: addressRefusal(address, settings.allow_from), user: null };
  const source = { address, port, user };
  if (refusal !== null) return { source, refusal };
  // The users who own the sockets before and after the participant's response also owned them in between.
  if (await dds.prove()) return { source, refusal: local ? (await authorizeUser(dds, settings, findUsers)).refusal : null };
  return { source, refusal: `requests from ${address} are not accepted: its DDS participant did not respond` };
}

/**
 * The source port alone does not identify the sender: other local users can send from it (SO_REUSEADDR, IP_PKTINFO) and have closed their
 * socket by now. But they cannot receive what is sent to another user's participant.
 */
async function authorizeUser(
  { port, receivingPorts }: DdsCaller,
  settings: ShutdownSettings,
  findUsers: FindUsers,
): Promise<{ refusal: string | null; user: string | null }> {
  const [senders, receivers] = await Promise.all([findUsers([port]), receivingPorts && findUsers(receivingPorts)]);
  const known = [...(senders ?? []), ...(receivers ?? [])];
  const user = known.length === 0 ? null : [...new Set(known.map(shownUser))].join(', ');
  const refusal = userRefusal(known, settings);
  if (refusal !== null || (senders && receivers)) return { refusal, user };
  return { refusal: `cannot identify the user at UDP port ${port}; call from a program that runs until it has the response`, user };
}

/** A user in records and messages. */
function shownUser({ name, uid }: LocalUser): string {
  return name ?? String(uid);
}

/** Why one of these users, each of whom may have sent the request, may not request a safe shutdown; null: all of them may. */
function userRefusal(users: readonly LocalUser[], { allow_groups, allow_users }: ShutdownSettings): string | null {
  const ownUid = process.geteuid?.() ?? 0;
  const refused = users.find(
    (user) =>
      user.uid !== 0 &&
      user.uid !== ownUid &&
      !user.groups.some((group) => allow_groups.includes(group)) &&
      !allow_users.includes(shownUser(user)),
  );
  if (!refused) return null;
  const [group] = allow_groups;
  const inGroup = refused.name === null || group === undefined ? '' : `run: sudo adduser ${refused.name} ${group}, or `;
  return `the user ${shownUser(refused)} may not request a safe shutdown; ${inGroup}add ${shownUser(refused)} to safe_shutdown.allow_users`;
}

/** Backed by the kernel and this machine's users and groups. */
export function machineUsers(environment: NodeJS.ProcessEnv): FindUsers {
  const owners = new UdpOwners({ tableSocket: SOCKET_TABLES });
  const users = new Users(environment);
  return async (ports) => {
    const uids = await owners.usersOf(ports);
    return uids && Promise.all(uids.map((uid) => users.user(uid)));
  };
}

/** The steps that consist of several items. */
export interface ShutdownRunners {
  readonly hooks: ListItems;
  readonly units: ListItems;
}

/** The executables of a folder and the systemd units, as in the settings. */
export function machineRunners(environment: NodeJS.ProcessEnv, log: Log): (settings: ShutdownSettings) => ShutdownRunners {
  const uid = process.geteuid?.() ?? 0;
  return ({ hooksFolder, hooksRequired, stop_units: units }) => ({
    hooks: () => hookItems({ folder: hooksFolder, required: hooksRequired, environment, log, uid }),
    units: async () => unitItems({ units, environment, log, helperSocket: helperSocket() }),
  });
}

/** Shuts the machine down through systemd-logind. */
export function machinePower(environment: NodeJS.ProcessEnv, log: Log, clocks: Clocks): PowerControl {
  const monotonicSeconds = (): number => clocks.monotonicSeconds();
  return new Logind({ environment, log, monotonicSeconds, helperSocket: helperSocket() });
}

/** Root needs no helper; the helper would also use the package's configuration instead of that of a manual run. */
function helperSocket(): string | null {
  return process.geteuid?.() === 0 ? null : HELPER_SOCKET;
}
