import { NOT_INSTALLED, runProgram } from './program-runner.ts';

/** The newest of it is kept: a service that logs in a loop must not fill the disk by way of its backup. */
const MAX_LINES = 40_000;
const MAX_BYTES = 8e6;
const SECONDS = 60;
const UNITS = ['edge-health', 'edge-health@*', 'edge-health-ops', 'edge-health-ops@*', 'edge-health-stop@*'];

export type Journal = { readonly text: Buffer } | { readonly reason: string };

/** The journal's lines about the product's units, of so many hours; or why they cannot be had. */
export async function readJournal(hours: number, environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<Journal> {
  const units = UNITS.flatMap((unit) => ['--unit', unit]);
  const given = ['--no-pager', '--quiet', '--output=short-iso', ...units, '--since', `-${hours}h`, '--lines', String(MAX_LINES)];
  const { exitCode, stderr, stdout } = await runProgram('journalctl', given, { environment, seconds: SECONDS, signal });
  if (exitCode === NOT_INSTALLED) return { reason: 'there is no journalctl on this machine' };
  const said = stderr.trim().split('\n')[0] ?? '';
  if (exitCode !== 0) return { reason: `journalctl failed (${exitCode ?? 'ended by a signal'}): ${said}` };
  if (stdout === '' && said !== '') return { reason: `${said}; put the user into the group systemd-journal` };
  return { text: newest(Buffer.from(stdout)) };
}

/** Whole lines from the end. */
function newest(text: Buffer): Buffer {
  if (text.length <= MAX_BYTES) return text;
  const cut = text.subarray(text.length - MAX_BYTES);
  return cut.subarray(cut.indexOf('\n') + 1);
}
