type RecordProblem = 'in-use' | 'exists' | 'none' | 'altered' | 'unsupported' | 'unwritable' | 'changed';

/** An error whose message contains the remedy. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
  readonly code: RecordProblem;

  constructor(code: RecordProblem, message: string) {
    super(message);
    this.code = code;
  }
}

const NOT_PERMITTED = 'this user may not write there; give it the folder, or choose another one with --out';
const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'the disk quota is used up; free some space',
  EROFS: 'the file system is read-only; mount it writable, or choose another folder with --out',
  EACCES: NOT_PERMITTED,
  EPERM: NOT_PERMITTED,
  ENOTDIR: 'a part of the path is no folder; choose another one with --out',
  EEXIST: 'a part of the path is no folder; choose another one with --out',
  EIO: 'the disk fails; look at the log of the kernel (journalctl -k)',
};

/** Why a system call failed, and the remedy. */
export function explained(path: string, error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  return `${path}: ${ADVICE[code] ?? message}`;
}

/** Converts a system error to a RecordError. */
export function attempt<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof RecordError || typeof (error as NodeJS.ErrnoException).code !== 'string') throw error;
    throw new RecordError('unwritable', explained(path, error));
  }
}
