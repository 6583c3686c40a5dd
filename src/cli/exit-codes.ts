/** Exit codes, from sysexits(3) if it defines one; `status` uses STATUS_EXIT instead. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 64,
  /** The service is not reachable, or a requirement is not installed. */
  unavailable: 69,
  /** The port or the data folder is in use. */
  inUse: 75,
  noPermission: 77,
  config: 78,
} as const;

/** Nagios-compatible exit codes of `status`. */
export const STATUS_EXIT = { OK: 0, WARNING: 1, ERROR: 2, CRITICAL: 2, UNKNOWN: 3 } as const;
