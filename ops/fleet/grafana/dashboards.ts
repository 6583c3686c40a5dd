import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dataquery as Query } from '@grafana/grafana-foundation-sdk/prometheus';
import { fleetDashboard } from './fleet.ts';
import { robotDashboard } from './robot.ts';

/** The text of every dashboard by the file it belongs in, relative to the checkout. */
export function dashboardFiles(): Record<string, string> {
  const built = { fleet: fleetDashboard(), robot: robotDashboard() };
  return Object.fromEntries(
    Object.entries(built).map(([name, builder]) => [
      `ops/fleet/grafana/dashboards/${name}.json`,
      `${JSON.stringify(numbered(builder.build()), null, 2)}\n`,
    ]),
  );
}

/** Panels need an id each, and their queries a letter. The same panel keeps its own as long as none is put before it. */
function numbered(dashboard: Dashboard): Dashboard {
  for (const [index, panel] of (dashboard.panels ?? []).entries()) {
    panel.id = index + 1;
    const targets = (('targets' in panel && panel.targets) || []) as Query[];
    for (const [place, target] of targets.entries()) target.refId ??= String.fromCharCode(65 + place);
  }
  return dashboard;
}
