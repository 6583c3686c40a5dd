/** Exit codes, from sysexits(3) where it has one; `status` uses those of monitoring plugins instead. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 64,
  /** Something that is needed is not installed. */
  unavailable: 69,
  /** The port or the data folder is in use. */
  inUse: 75,
  noPermission: 77,
  config: 78,
} as const;

/** What `status` exits with, as monitoring plugins do. */
export const STATUS_EXIT = { OK: 0, WARNING: 1, ERROR: 2, CRITICAL: 2, UNKNOWN: 3 } as const;
