import { openAlertsAbout } from '../../model/alert-book.ts';
import type { Threshold } from '../../page/chart.tsx';
import type { PageState } from '../../page/page-state.ts';
import type { Metric } from '../../types.ts';

/**
 * The thresholds to draw: the configured ones of the local node; of another node, whose configuration is not known here, those of its
 * open alerts. An ERROR's threshold is a time, not a value of the metric.
 */
export function thresholdsOf({ book, local, node, status }: PageState, metric: Metric): Threshold[] {
  const own = node === local ? status?.thresholds[metric] : undefined;
  const configured = own
    ? ([
        { severity: 'WARNING', value: own.warning },
        { severity: 'CRITICAL', value: own.critical },
      ] as const)
    : [];
  const open = openAlertsAbout(book, node, metric).flatMap(({ severity, threshold }) =>
    severity === 'ERROR' ? [] : [{ severity, value: threshold }],
  );
  const all = [...configured, ...open];
  return all.filter(({ value }, i) => all.findIndex((other) => other.value === value) === i);
}
