import { hasRootRights } from '../../src/system/root-helper.ts';
import { showUnits } from '../../src/system/systemctl-show.ts';
import { EXIT, Refusal } from './command.ts';

/** Of the harness itself. */
export const HARNESS_UNIT = 'edge-health-harness.service';

/** Active, or on its way to it, which includes waiting to be restarted. */
export async function isActive(unit: string): Promise<boolean> {
  const shown = await showUnits([unit], ['ActiveState'], { environment: process.env });
  const state = shown.kind === 'units' ? shown.units[0]?.ActiveState : undefined;
  return state !== undefined && ['active', 'activating', 'reloading', 'deactivating'].includes(state);
}

export function refuseInCheckout(isCheckout: boolean, instead: string): void {
  if (isCheckout) throw new Refusal(EXIT.unavailable, `this is a checkout, which has no unit; use: ${instead}`);
}

export function refuseUnlessRoot(command: string): void {
  if (!hasRootRights(process.env)) throw new Refusal(EXIT.unavailable, `only root may: sudo edge-health harness ${command}`);
}
