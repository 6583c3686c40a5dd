import { METRICS } from '../../core/metrics.ts';
import { type Context, nodeOf, sendTagged } from '../context.ts';
import { Problem } from '../problem.ts';

/** GET /health: the current health status, exactly the seven fields. */
export function health(context: Context): void | Promise<void> {
  const node = nodeOf(context);
  const current = context.view.current(node);
  if (!current) throw new Problem('no_sample_yet', `no sample of ${node} yet; try again in a second`);
  // A remote node can send several statuses with one timestamp. The tag therefore contains the values.
  const parts = [Date.parse(current.timestamp).toString(36), current.status, ...METRICS.map((metric) => current[metric])];
  return sendTagged(context, 'application/json', JSON.stringify(current), `"${parts.join('_')}"`);
}
