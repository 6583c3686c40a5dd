import { execFile } from 'node:child_process';
import { EXIT, Refusal } from './command.ts';

/** Of the harness itself. */
export const HARNESS_UNIT = 'edge-health-harness.service';
/** Starting waits for the service to answer, stopping for the report. */
const TIMEOUT_MS = 200_000;

export interface Answer {
  readonly code: number;
  readonly output: string;
}

export function systemctl(...args: string[]): Promise<Answer> {
  return new Promise((resolve) => {
    execFile('systemctl', args, { timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      resolve({ code, output: `${stdout}${stderr}`.trim() || (error?.message ?? '') });
    });
  });
}

/** Active, or on its way to it, which includes waiting to be restarted. */
export async function isActive(unit: string): Promise<boolean> {
  const { output } = await systemctl('show', '--property=ActiveState', '--value', unit);
  return ['active', 'activating', 'reloading', 'deactivating'].includes(output);
}

export function refuseInCheckout(isCheckout: boolean, instead: string): void {
  if (isCheckout) throw new Refusal(EXIT.unavailable, `this is a checkout, which has no unit; use: ${instead}`);
}

export function refuseUnlessRoot(command: string): void {
  if (process.getuid?.() !== 0) throw new Refusal(EXIT.unavailable, `only root may: sudo edge-health harness ${command}`);
}
