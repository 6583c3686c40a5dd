import { isDeepStrictEqual } from 'node:util';

/**
 * Stands in for `tap` while mutants are tried: thousands of times the same tests run in one process, which takes milliseconds where a
 * process of tap's takes half a second. Only what the tests of the engine use is there; anything else fails the first run.
 */
type Body = (t: Assertions) => unknown;

export interface Collected {
  readonly name: string;
  readonly run: () => Promise<void>;
}

export const collected: Collected[] = [];

class Failure extends Error {}

function check(holds: boolean, what: string, message: unknown): void {
  if (!holds) throw new Failure(`${what}${message === undefined ? '' : `: ${String(message)}`}`);
}

function show(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 300) ?? String(value);
}

/** As tap: a string is part of the other, a pattern fits it, every member of an object or array matches. */
function matches(actual: unknown, pattern: unknown): boolean {
  if (pattern instanceof RegExp) return typeof actual === 'string' && pattern.test(actual);
  if (typeof pattern === 'string') return typeof actual === 'string' && actual.includes(pattern);
  if (typeof pattern !== 'object' || pattern === null) return actual === pattern;
  if (typeof actual !== 'object' || actual === null) return false;
  return Object.entries(pattern).every(([key, value]) => matches((actual as Record<string, unknown>)[key], value));
}

export class Assertions {
  readonly #teardowns: (() => unknown)[] = [];

  teardown(handler: () => unknown): void {
    this.#teardowns.push(handler);
  }

  async tearDown(): Promise<void> {
    for (const handler of this.#teardowns.reverse()) await handler();
  }

  pass(_message?: unknown): void {}

  ok(value: unknown, message?: unknown): void {
    check(Boolean(value), 'not ok', message);
  }

  equal(actual: unknown, expected: unknown, message?: unknown): void {
    check(Object.is(actual, expected) || actual === expected, `${show(actual)} is not ${show(expected)}`, message);
  }

  not(actual: unknown, expected: unknown, message?: unknown): void {
    check(actual !== expected, `is ${show(expected)}`, message);
  }

  same(actual: unknown, expected: unknown, message?: unknown): void {
    check(isDeepStrictEqual(actual, expected), `${show(actual)} is not the same as ${show(expected)}`, message);
  }

  match(actual: unknown, pattern: unknown, message?: unknown): void {
    check(matches(actual, pattern), `${show(actual)} does not match ${pattern instanceof RegExp ? pattern : show(pattern)}`, message);
  }
}

export function test(name: string, body: Body): void {
  const run = async (): Promise<void> => {
    const t = new Assertions();
    try {
      await body(t);
    } finally {
      await t.tearDown();
    }
  };
  collected.push({ name, run });
}

export default { test };
