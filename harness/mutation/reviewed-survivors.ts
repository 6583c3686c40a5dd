/** A mutant that no test notices, and why it may stay. It is found by its text, wherever in the file it stands. */
export interface Reviewed {
  readonly file: string;
  /** The code and its replacement; any white space counts as one blank, and only the first 200 characters are compared. */
  readonly original: string;
  readonly replacement: string;
  /** How many mutants of the file have this text. Default: 1. */
  readonly count?: number;
  /** `equivalent`: the mutant does the same; `informative`: it changes figures or words that decide nothing. */
  readonly because: 'equivalent' | 'informative';
  readonly reason: string;
}

/** Mutants that no test notices, and why that is right. A review of a mutant that does not survive fails the check. */
export const REVIEWED: readonly Reviewed[] = [
  {
    file: 'harness/engine/criteria/alerts.ts',
    original: 'one < other',
    replacement: 'one <= other',
    because: 'equivalent',
    reason: 'the keys of a map differ',
  },
  {
    file: 'harness/engine/criteria/uptime.ts',
    original: 'seconds > 0',
    replacement: 'seconds >= 0',
    because: 'informative',
    reason: 'a word in a table; a step of 0 s is none',
  },
  {
    file: 'harness/engine/theil-sen.ts',
    original: 'first < second',
    replacement: 'first <= second',
    because: 'equivalent',
    reason: 'a point and itself are not apart, and make no pair',
  },
  {
    file: 'harness/record/evidence.ts',
    original: '[]',
    replacement: '["Stryker was here"]',
    because: 'equivalent',
    reason: 'a text among the times at which the machine was off has no time, and none is compared with it',
  },
  {
    file: 'harness/record/evidence.ts',
    original: 'seconds < 0',
    replacement: 'seconds <= 0',
    because: 'equivalent',
    reason: 'an event of 0 s is none; put back by 0 s changes nothing',
  },
  {
    file: 'harness/record/evidence.ts',
    original: 'event.at >= mark.at - DISTINCT_SECONDS',
    replacement: 'event.at > mark.at - DISTINCT_SECONDS',
    because: 'equivalent',
    reason: 'statuses stamped by the older clock are forgotten at that moment',
  },
  {
    file: 'harness/record/evidence/alert-episodes.ts',
    original: 'this.#session++',
    replacement: 'this.#session--',
    because: 'equivalent',
    reason: 'sessions are only compared for equality',
  },
  {
    file: 'harness/record/evidence/readings.ts',
    original: '() => Number.NaN',
    replacement: '() => undefined',
    because: 'equivalent',
    reason: 'a column of numbers takes it as NaN',
  },
  {
    file: 'harness/record/evidence/readings.ts',
    original: '{ topic: false, events: false }',
    replacement: '{}',
    because: 'equivalent',
    reason: 'undefined counts as false',
  },
  {
    file: 'harness/record/evidence/statuses.ts',
    original: 'at < this.#latest',
    replacement: 'at <= this.#latest',
    because: 'informative',
    reason: 'the count of statuses out of order, where two are stamped for the same moment by different clocks',
  },
  {
    file: 'harness/record/evidence/statuses.ts',
    original: '{ topic: 0, events: 0 }',
    replacement: '{}',
    because: 'equivalent',
    reason: 'statuses received before the first reading are compared with nothing, and counting starts again with it',
  },
];
