import { installation } from '../../src/installation/installation.ts';
import { wayToPermission } from '../../src/system/permission.ts';
import { newestRun, reportsFolder } from '../run/place.ts';
import { EXIT, Refusal } from '../run/refusal.ts';
import { Requests } from '../run/request.ts';

/** What the commands know of where they are. */
export interface HarnessContext {
  readonly isCheckout: boolean;
  /** Of the package: where its units may write, whatever `storage.path` says. */
  readonly stateFolder: string;
  /** Where runs are kept that nobody named a folder for. */
  readonly reports: string;
  readonly requests: Requests;
}

export function harnessContext(): HarnessContext {
  const { dataFolder: stateFolder, isPackage } = installation();
  const isCheckout = !isPackage;
  return { isCheckout, stateFolder, reports: reportsFolder(stateFolder, isCheckout), requests: new Requests(stateFolder) };
}

/** The folder that was named, else that of the unit's run, else the newest. Throws Refusal where there is none. */
export function folderOf(named: string | undefined, { reports, requests }: HarnessContext): string {
  if (named !== undefined) return named;
  const folder = explained(requests.folder, () => requests.current()?.out ?? requests.last()?.out ?? newestRun(reports));
  if (folder !== null && folder !== undefined) return folder;
  throw new Refusal(EXIT.unavailable, `there is no run in ${reports}; begin one with: edge-health harness start, or name its folder`);
}

/** A Refusal in place of what the system refuses, with the way to do it. */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code, message, path: refused = path } = error as NodeJS.ErrnoException;
    if (code !== 'EACCES' && code !== 'EPERM') throw new Refusal(EXIT.unavailable, message);
    throw new Refusal(
      EXIT.unavailable,
      `no permission for ${refused}; ${wayToPermission('run it with sudo, or as a member of its group (edge-health on an appliance)')}`,
    );
  }
}
