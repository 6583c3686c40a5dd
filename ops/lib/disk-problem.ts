const REMEDIES: Readonly<Record<string, (folder: string) => string>> = {
  ENOSPC: (folder) => `the disk of ${folder} is full; remove what is not needed there, or lower storage.max_megabytes and ops.keep_days`,
  EDQUOT: (folder) => `the quota of ${folder} is used up; remove what is not needed there, or raise it`,
  EROFS: (folder) => `${folder} is mounted read-only; see dmesg for the disk's errors, then mount it for writing again`,
  EACCES: (folder) => `${folder} may not be written by this user; run it as the service's: sudo -u edge-health edge-health ops …`,
  EPERM: (folder) => `${folder} may not be written by this user; run it as the service's: sudo -u edge-health edge-health ops …`,
  EIO: (folder) => `the disk of ${folder} cannot be written (input/output error); see dmesg, and replace it`,
  EMFILE: () => 'too many files are open; restart the scheduler: systemctl restart edge-health-ops',
};

/** Why writing below a folder failed, with what to do; null: it is no error of the file system. */
export function diskProblem(error: unknown, folder: string): string | null {
  const { code } = error as NodeJS.ErrnoException;
  const remedy = code === undefined ? undefined : REMEDIES[code];
  if (remedy) return remedy(folder);
  const { message, syscall } = error as NodeJS.ErrnoException;
  return syscall === undefined ? null : `${message}; look at ${folder}`;
}
