/** Log function of this module, declared here so that the module depends on nothing outside its folder. */
export type Logger = (
  level: 'error' | 'warning' | 'notice' | 'info' | 'debug',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

interface Line {
  readonly sinceSeconds: number;
  suppressed: number;
}

/** Messages remembered. */
const MAX_KINDS = 64;

/**
 * Passes each message on once per `periodSeconds`, and adds the number of suppressed ones to the next: lines that remote participants can
 * cause must not fill the journal.
 */
export function rarely(log: Logger, monotonicSeconds: () => number, periodSeconds: number): Logger {
  const lines = new Map<string, Line>();
  return (level, message, fields = {}) => {
    const now = monotonicSeconds();
    const last = lines.get(message);
    if (last && now - last.sinceSeconds < periodSeconds) {
      last.suppressed += 1;
      return;
    }
    if (lines.size >= MAX_KINDS && !last) lines.clear();
    lines.set(message, { sinceSeconds: now, suppressed: 0 });
    log(level, message, last && last.suppressed > 0 ? { ...fields, suppressed: last.suppressed } : fields);
  };
}
