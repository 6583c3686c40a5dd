import type { DdsCaller, ShutdownCaller, ShutdownSource } from '../core/shutdown.ts';
import { type LocalUser, shownUser, userRefusal } from '../core/shutdown-callers.ts';
import { UDP_TABLE_SOCKET, UdpOwners } from '../system/udp-owners.ts';
import { Users } from '../system/users.ts';
import { AllowList, type ShutdownSettings } from './safe-shutdown-settings.ts';

/** Finds the users whose UDP sockets are on these ports of this machine; null: there is none on one of them, or its user is not known. */
export type FindUsers = (ports: readonly number[]) => Promise<readonly LocalUser[] | null>;

/** Where a call came from, and why that caller may not ask; null: it may. */
export interface Judged {
  readonly source: ShutdownSource;
  readonly refusal: string | null;
}

/** Decides who may ask for a safe shutdown. */
export class Callers {
  readonly #findUsers: FindUsers;
  readonly #ownUid: number;
  #settings: ShutdownSettings;
  #allowed: AllowList;

  constructor(settings: ShutdownSettings, findUsers: FindUsers, ownUid = process.geteuid?.() ?? 0) {
    this.#settings = settings;
    this.#allowed = new AllowList(settings.allowFrom);
    this.#findUsers = findUsers;
    this.#ownUid = ownUid;
  }

  configure(settings: ShutdownSettings): void {
    this.#settings = settings;
    this.#allowed = new AllowList(settings.allowFrom);
  }

  async judge({ dds }: ShutdownCaller): Promise<Judged> {
    if (dds === null) return { source: { address: null, port: null, user: null }, refusal: null };
    const { address, local, port } = dds;
    if (local && this.#settings.trustNetwork) return { source: { address, port, user: null }, refusal: null };
    const { refusal, user } = local ? await this.#judgeUser(dds) : { refusal: this.#allowed.refusal(address), user: null };
    const source = { address, port, user };
    if (refusal !== null) return { source, refusal };
    // Whose the ports are before and after the participant has answered, they were meanwhile.
    if (await dds.prove()) return { source, refusal: local ? (await this.#judgeUser(dds)).refusal : null };
    return { source, refusal: `requests from ${address} are not accepted: its participant has not answered what was sent to it` };
  }

  /**
   * The port that a request came from does not tell alone who sent it: other users of the machine can send from there as well (SO_REUSEADDR,
   * IP_PKTINFO), and have closed their socket by now. But they cannot receive what is sent to somebody else's participant.
   */
  async #judgeUser({ port, receivingPorts }: DdsCaller): Promise<{ refusal: string | null; user: string | null }> {
    const [senders, receivers] = await Promise.all([this.#findUsers([port]), receivingPorts && this.#findUsers(receivingPorts)]);
    const { allowGroups, allowUsers } = this.#settings;
    const rules = { allowGroups, allowUsers, ownUid: this.#ownUid };
    const known = [...(senders ?? []), ...(receivers ?? [])];
    const user = known.length === 0 ? null : [...new Set(known.map(shownUser))].join(', ');
    const refusal = userRefusal(known, rules);
    if (refusal !== null || (senders && receivers)) return { refusal, user };
    return { refusal: `cannot tell which user asks from UDP port ${port}; see docs/safe-shutdown.md, "Who may ask"`, user };
  }
}

/** As the kernel and this machine's users and groups say. */
export function machineUsers(environment: NodeJS.ProcessEnv): FindUsers {
  const owners = new UdpOwners({ tableSocket: UDP_TABLE_SOCKET });
  const users = new Users(environment);
  return async (ports) => {
    const uids = await owners.usersOf(ports);
    return uids && Promise.all(uids.map((uid) => users.user(uid)));
  };
}
