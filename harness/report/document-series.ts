import * as v from 'valibot';

/** The part of report.json that the charts draw. Times are seconds on the run's axis, which begins at its begin. */

const at = (description: string) => v.pipe(v.number(), v.description(`${description}, in seconds since the begin of the run.`));
const text = (description: string) => v.pipe(v.string(), v.description(description));
const seconds = (description: string) => v.pipe(v.number(), v.description(description));
const column = (description: string) =>
  v.pipe(v.array(v.nullable(v.number())), v.description(`${description}; a value for each element of at, null: not known.`));

export const seriesSchema = v.strictObject({
  begun_epoch_seconds: v.pipe(v.number(), v.description('Begin of the axis, in seconds since 1970 UTC.')),
  at: v.pipe(
    v.array(v.number()),
    v.description('Time of each point in seconds since the begin, by the boot-time clock: it neither steps nor stops in a suspend.'),
  ),
  rate_percent: column('Received of expected statuses in percent'),
  memory_megabytes: column('Resident memory of the service in MB (1,000,000 bytes)'),
  host_memory_percent: column('Memory in use on the machine of the service in percent'),
  cpu_percent: column('CPU of the service in percent of one core'),
  host_cpu_percent: column('CPU of the machine of the service in percent'),
  celsius: column('Temperature of the machine of the service in degrees Celsius'),
  memory_medians: v.pipe(
    v.array(v.strictObject({ at: at('Middle of the five minutes'), megabytes: v.pipe(v.number(), v.description('Median.')) })),
    v.description('The five-minute medians that Stability was judged by.'),
  ),
  memory_trend: v.pipe(
    v.array(
      v.strictObject({
        from: at('Begin of the line'),
        to: at('End of the line'),
        megabytes_from: v.pipe(v.number(), v.description('Its height at the begin.')),
        megabytes_to: v.pipe(v.number(), v.description('Its height at the end.')),
      }),
    ),
    v.description(
      'A line through the medians of each run of the service, all with the Theil–Sen slope; none where there are not enough medians.',
    ),
  ),
  alerts: v.pipe(
    v.array(
      v.strictObject({
        from: at('When it was raised'),
        to: v.pipe(v.nullable(v.number()), v.description('When it was resolved, likewise; null: open at the end.')),
        severity: text('WARNING, ERROR or CRITICAL.'),
        metric: text('The metric it is about.'),
        alert_id: text('Of its episode.'),
      }),
    ),
    v.description('Stretches of alert episodes, each with the severity it had.'),
  ),
  restarts: v.pipe(
    v.array(
      v.strictObject({
        at: at('When the service was there again'),
        cause: text('Why it ended.'),
        detail: text('More about it; may be empty.'),
      }),
    ),
    v.description('Restarts of the service.'),
  ),
  absences: v.pipe(
    v.array(
      v.strictObject({
        from: at('Begin'),
        to: at('End'),
        kind: text('off: the machine was off or booting; away: the watcher was not running; stalled: it was kept from running.'),
      }),
    ),
    v.description('Stretches in which nobody looked.'),
  ),
  suspends: v.pipe(
    v.array(v.strictObject({ at: at('When it began'), seconds: seconds('How long it was.') })),
    v.description('Suspends of the machine.'),
  ),
  clock_steps: v.pipe(
    v.array(v.strictObject({ at: at('When it was seen'), seconds: seconds('Positive: the clock was put forward.') })),
    v.description('Steps of the wall clock.'),
  ),
});
