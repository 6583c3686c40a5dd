import { execFile } from 'node:child_process';

/** Properties of one unit by systemd's own names (systemctl(1), org.freedesktop.systemd1(5)); '' where systemd prints none. */
export type UnitProperties<Name extends string> = Readonly<Record<Name, string>>;

export type ShownUnits<Name extends string> =
  | { readonly kind: 'units'; readonly units: readonly UnitProperties<Name>[] }
  /** systemctl is not installed, this system was not booted with systemd, or D-Bus is missing, through which users query it. */
  | { readonly kind: 'no systemd'; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string };

export interface ShowOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
}

const TIMEOUT_SECONDS = 6;
const NOT_BOOTED = /not been booted with systemd|Host is down/i;
const NO_BUS = /Failed to connect to .*\bbus\b.*: No such file/i;

/** Parses the output of `systemctl show`: one paragraph per unit, one `Name=value` per line. */
export function parseShownUnits<Name extends string>(text: string, names: readonly Name[]): UnitProperties<Name>[] {
  const paragraphs = text.split('\n\n').filter((paragraph) => paragraph.trim() !== '');
  return paragraphs.map((paragraph) => {
    const lines = paragraph.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)] as const);
    const values = new Map(lines);
    return Object.fromEntries(names.map((name) => [name, values.get(name) ?? ''])) as UnitProperties<Name>;
  });
}

/** A numeric property; null where it is `[not set]`, `infinity` or the 64-bit value that older versions print for both. */
export function numberOf(value: string): number | null {
  return /^\d{1,18}$/.test(value) ? Number(value) : null;
}

/** Reads properties of units with one `systemctl show`; unit names may be patterns, which also match inactive units. Never rejects. */
export function showUnits<Name extends string>(
  units: readonly string[],
  names: readonly Name[],
  { environment, signal }: ShowOptions,
): Promise<ShownUnits<Name>> {
  const options = {
    env: { ...environment, LC_ALL: 'C.UTF-8', SYSTEMD_COLORS: '0', SYSTEMD_PAGER: '' },
    timeout: TIMEOUT_SECONDS * 1000,
    killSignal: 'SIGKILL',
    ...(signal ? { signal } : {}),
  } as const;
  return new Promise((resolve) => {
    execFile('systemctl', ['show', '--all', `--property=${names.join(',')}`, '--', ...units], options, (error, stdout, stderr) => {
      const complaint = stderr.trim().split('\n').at(-1) ?? '';
      if (error === null) resolve({ kind: 'units', units: parseShownUnits(stdout, names) });
      else if (signal?.aborted) resolve({ kind: 'failed', why: (signal.reason as Error).message });
      else if (error.code === 'ENOENT') resolve({ kind: 'no systemd', why: 'systemd is not installed' });
      else if (NOT_BOOTED.test(complaint)) resolve({ kind: 'no systemd', why: 'this system was not booted with systemd' });
      else if (NO_BUS.test(complaint)) resolve({ kind: 'no systemd', why: 'D-Bus is not installed' });
      else if (error.killed) resolve({ kind: 'failed', why: `systemctl show: no response within ${TIMEOUT_SECONDS} s` });
      else resolve({ kind: 'failed', why: `systemctl: ${complaint || error.message}` });
    });
  });
}
