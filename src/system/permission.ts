import { identity } from './privileges.ts';

/**
 * One line for a file or folder that this user may not use, with the way to do it; null: the error is another one. `command` is what was
 * called, without options: `ops health_check`.
 */
export function permissionProblem(error: unknown, command: string): string | null {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if ((code !== 'EACCES' && code !== 'EPERM') || process.geteuid?.() === 0) return null;
  return `${path === undefined ? message : `no permission for ${path}`}; ${wayToPermission(`run: sudo edge-health ${command}`)}`;
}

/** What to do without permission: `otherwise`, unless that was done, and root became the owner of the data folder for it. */
export function wayToPermission(otherwise: string): string {
  return process.env['SUDO_USER'] === undefined
    ? otherwise
    : `root's commands run as user ${identity().USER}: give it to that user, or name another`;
}
