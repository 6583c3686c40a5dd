/** A user of this machine. */
export interface LocalUser {
  readonly uid: number;
  /** Null: the user has no name. */
  readonly name: string | null;
  readonly groups: readonly string[];
}

export interface UserRules {
  /** Groups whose members may request a safe shutdown. */
  readonly allowGroups: readonly string[];
  /** Users, by name or by number, who may request it besides those of the groups. */
  readonly allowUsers: readonly string[];
  /** The user of the service itself. */
  readonly ownUid: number;
}

/** A user in records and messages. */
export function shownUser({ name, uid }: LocalUser): string {
  return name ?? String(uid);
}

/** Why one of these users, each of whom may have sent the request, may not request a safe shutdown; null: all of them may. */
export function userRefusal(users: readonly LocalUser[], { allowGroups, allowUsers, ownUid }: UserRules): string | null {
  const refused = users.find(
    (user) =>
      user.uid !== 0 &&
      user.uid !== ownUid &&
      !user.groups.some((group) => allowGroups.includes(group)) &&
      !allowUsers.includes(shownUser(user)),
  );
  if (!refused) return null;
  const [group] = allowGroups;
  const inGroup = refused.name === null || group === undefined ? '' : `run: sudo adduser ${refused.name} ${group}, or `;
  return `the user ${shownUser(refused)} may not request a safe shutdown; ${inGroup}add ${shownUser(refused)} to safe_shutdown.allow_users`;
}
