import { identity } from './privileges.ts';

/**
 * Message and remedy for a missing permission on a file or folder; null for other errors. `command`: the command without options, such as
 * `ops health_check`.
 */
export function permissionProblem(error: unknown, command: string): string | null {
  const { code, message, path } = error as NodeJS.ErrnoException;
  if ((code !== 'EACCES' && code !== 'EPERM') || process.geteuid?.() === 0) return null;
  return `${path === undefined ? message : `permission denied: ${path}`}; ${permissionRemedy(`run: sudo edge-health ${command}`)}`;
}

/** The remedy for a missing permission: `otherwise`, unless sudo was used and root's rights were dropped for the data folder's owner. */
export function permissionRemedy(otherwise: string): string {
  return process.env['SUDO_USER'] === undefined
    ? otherwise
    : `root's commands run as user ${identity().USER}: give it to that user, or name another`;
}
