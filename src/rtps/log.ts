/** How this room speaks; nothing of it knows of the rest of the product. */
export type Logger = (
  level: 'error' | 'warning' | 'notice' | 'info' | 'debug',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

interface Said {
  readonly sinceSeconds: number;
  more: number;
}

/** Kinds of lines remembered. */
const MOST = 64;

/**
 * Lets each kind of line through once in `periodSeconds`, and then tells how many there were: what strangers can cause must not fill the
 * journal.
 */
export function rarely(log: Logger, monotonicSeconds: () => number, periodSeconds: number): Logger {
  const said = new Map<string, Said>();
  return (level, message, fields = {}) => {
    const now = monotonicSeconds();
    const last = said.get(message);
    if (last && now - last.sinceSeconds < periodSeconds) {
      last.more += 1;
      return;
    }
    if (said.size >= MOST && !last) said.clear();
    said.set(message, { sinceSeconds: now, more: 0 });
    log(level, message, last && last.more > 0 ? { ...fields, more_like_it: last.more } : fields);
  };
}
