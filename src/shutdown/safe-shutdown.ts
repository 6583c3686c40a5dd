import { monotonicFactory } from 'ulid';
import { nullAfterTimeout } from '../core/platform/timeout.ts';
import type { Log, Publisher } from '../core/ports.ts';
import {
  checkCall,
  isEscalation,
  MAX_REQUESTED_BY,
  type PowerControl,
  recordOf,
  resolvedOutcome,
  type ShutdownCall,
  type ShutdownContext,
  type ShutdownHandler,
  type ShutdownOutcome,
  type ShutdownProgress,
  type ShutdownRecord,
  type ShutdownRecords,
  type ShutdownReply,
  type ShutdownRequest,
  type ShutdownSource,
  truncateMessage,
} from '../core/shutdown/shutdown.ts';
import { type Clocks, isoUtc, roundToMilliseconds } from '../core/time/time.ts';
import type { StatusDocument } from '../http/api/schema.ts';
import { authorizeCaller, type FindUsers, type ShutdownRunners } from './callers.ts';
import { Procedure, type ProcedureOptions, type Report } from './procedure.ts';
import { RefusalTally, RequestLimit } from './request-limit.ts';
import type { ShutdownSettings } from './settings.ts';

export interface SafeShutdownOptions {
  readonly settings: ShutdownSettings;
  readonly clocks: Clocks;
  readonly log: Log;
  readonly records: ShutdownRecords;
  /** Writes pending records to the database; resolves with the reason of a failure, or null. */
  readonly flushStore: () => Promise<string | null>;
  readonly runners: (settings: ShutdownSettings) => ShutdownRunners;
  readonly power: PowerControl;
  readonly findUsers: FindUsers;
  /** The machine's boot id; null: unknown. */
  readonly bootId: string | null;
  readonly publish: Publisher['publishShutdown'];
}

const READING_SECONDS = 1;
/** Number of requests listed in /status. */
const REQUESTS_SHOWN = 10;

/** A shutdown in progress. */
interface Running {
  readonly procedure: Procedure;
  /** That of the request, and that of the one that escalated it. They have the same step, message and outcome. */
  records: readonly [ShutdownRecord, ...ShutdownRecord[]];
}

/**
 * The safe shutdown: accepts or refuses calls, records each, runs one procedure at a time and publishes its progress. It never rejects
 * and never throws because of a call's contents.
 */
export class SafeShutdown {
  readonly #options: SafeShutdownOptions;
  readonly #limit: RequestLimit;
  readonly #register: RefusalRegister;
  /** Ids must be unique, not secret, so OpenSSL need not be loaded. */
  readonly #uniqueId = monotonicFactory(Math.random);
  readonly #counts = { accepted: 0, refused: 0 };
  #settings: ShutdownSettings;
  #running: Running | null = null;
  #ended: Promise<void> = Promise.resolve();
  /** The records of the last shutdown, once it has ended. */
  #last: readonly ShutdownRecord[] = [];
  #isStopping = false;
  /** The last write of the running request's records. */
  #saving: Promise<unknown> = Promise.resolve();

  constructor(options: SafeShutdownOptions) {
    const { records, log, settings } = options;
    this.#options = options;
    this.#settings = settings;
    this.#limit = new RequestLimit(settings.max_requests_per_minute);
    this.#register = new RefusalRegister(records, log);
  }

  /** Responds to a call at once; an accepted procedure runs in the background. */
  readonly handler: ShutdownHandler = async (call, caller) => {
    const settings = this.#settings;
    try {
      const { refusal, source } = await authorizeCaller(caller, settings, this.#options.findUsers);
      if (refusal !== null) {
        // The refusal must not consume the rate limit of others.
        const reply = this.#refuse(call, source, refusal);
        return caller.dds?.local === false && caller.mayBeForAnother() ? null : reply;
      }
      if (caller.dds?.isNew() === false) return null;
      const decided = await this.#decide(call, source, settings);
      if (typeof decided === 'string') return this.#refuse(call, source, decided);
      // Checked again with no await after it: of two concurrent calls only one can pass.
      const blocker = this.#blocker(decided);
      if (blocker !== null) return this.#refuse(call, source, blocker);
      return this.#running ? this.#escalate(call, source, decided, this.#running) : this.#accept(call, source, decided, settings);
    } catch (error) {
      this.#options.log('error', 'safe shutdown request failed', { error: (error as Error).message });
      return { success: false, message: `refused: ${(error as Error).message}` };
    }
  };

  /** Determines the outcome of the last request of an earlier run, once the store is open, and logs what blocks the next one. */
  async start(): Promise<void> {
    const { bootId, records, log } = this.#options;
    const stored = await records.shutdowns({ accepted: true, limit: 4 }).catch(() => []); // The store logs its own errors.
    // A call may have arrived before the store was open.
    const earlier = stored.filter((record) => this.#known(record) === null);
    const last = ofLastShutdown(earlier);
    const now = this.#now();
    const past = last.map((record) => resolvedOutcome(record, bootId, now));
    if (this.#last.length === 0) this.#last = past;
    const changed = past.filter((record) => !last.includes(record));
    if (changed[0]) {
      const { outcome, message, reason, requested_by, request_id } = changed[0];
      log(outcome === 'completed' ? 'notice' : 'warning', `the last safe shutdown: ${message}`, { reason, requested_by, request_id });
      await this.#save(changed);
    }
    await this.#logBlockers();
  }

  /** Applies changed settings; a procedure in progress keeps its own. */
  async configure(settings: ShutdownSettings): Promise<void> {
    this.#settings = settings;
    this.#limit.setPerMinute(settings.max_requests_per_minute);
    await this.#logBlockers();
  }

  /** Ends a procedure in progress (unless the machine is shutting down already) and saves pending records. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#running?.procedure.stop();
    await this.#ended;
    await this.#register.flush();
  }

  async status(): Promise<StatusDocument['shutdown']> {
    const { bootId, records } = this.#options;
    // A hanging disk does not respond; the state in memory is returned nevertheless.
    const reading = records.shutdowns({ accepted: null, limit: REQUESTS_SHOWN }).catch(() => []);
    const stored = (await nullAfterTimeout(READING_SECONDS, reading)) ?? [];
    const { action, enabled } = this.#settings;
    const problem = await this.#actionProblem(this.#settings);
    const current = this.#running;
    const now = this.#now();
    const requests = stored.map((record) => this.#known(record) ?? resolvedOutcome(record, bootId, now));
    const shown = current?.records ?? this.#last;
    const ofLast = shown.length > 0 ? shown : ofLastShutdown(requests.filter((record) => record.outcome !== 'refused'));
    // An escalated shutdown keeps its id and its start.
    const [first, last] = [ofLast[0], ofLast.at(-1)];
    const outcome = last?.outcome ?? 'none';
    return {
      enabled,
      action,
      problem,
      state: outcome === 'refused' ? 'none' : outcome,
      request_id: first?.request_id ?? null,
      reason: last?.reason ?? null,
      requested_by: last?.requested_by ?? null,
      step: last?.step ?? null,
      seconds_left: current ? roundToMilliseconds(current.procedure.context.secondsLeft()) : null,
      started: first?.timestamp ?? null,
      ended: last?.ended ?? null,
      message: last?.message ?? null,
      ...this.#counts,
      requests: requests.map(({ boot_id: _, ...request }) => request),
    };
  }

  /** Returns the newer version in memory of a stored record; null: none. */
  #known({ request_id }: ShutdownRecord): ShutdownRecord | null {
    return [...(this.#running?.records ?? []), ...this.#last].find((record) => record.request_id === request_id) ?? null;
  }

  /** A validated request, or the reason why it is refused. */
  async #decide(call: ShutdownCall, { address }: ShutdownSource, settings: ShutdownSettings): Promise<ShutdownRequest | string> {
    if (!settings.enabled) return 'safe_shutdown.enabled is false on this machine';
    const requestedBy = String(call.requested_by).slice(0, 2 * MAX_REQUESTED_BY);
    const limit = this.#limit.take(`${address ?? ''} ${requestedBy}`, this.#options.clocks.monotonicSeconds());
    if (limit) {
      const { of, perMinute, waitSeconds } = limit;
      return `too many requests: at most ${perMinute} per minute from ${of}; try again in ${Math.ceil(waitSeconds)} s`;
    }
    const checked = checkCall(call);
    if (!checked.ok) return checked.message;
    const { request } = checked;
    // An escalated shutdown keeps its action, and its reason overrides locks.
    return this.#blocker(request) ?? (this.#running ? null : await this.#actionBlocker(request, settings)) ?? request;
  }

  /** Why the last step is impossible or forbidden by an inhibitor lock; null: it is not. */
  async #actionBlocker({ reason }: ShutdownRequest, settings: ShutdownSettings): Promise<string | null> {
    const forbidden = this.#options.power.inhibition(settings.action, reason);
    return (await this.#actionProblem(settings)) ?? forbidden;
  }

  /** Why this request can be neither accepted now nor escalate the shutdown in progress; null: it can. */
  #blocker({ reason }: ShutdownRequest): string | null {
    if (this.#isStopping) return 'the service is being stopped';
    if (!this.#running) return null;
    const { context } = this.#running.procedure;
    if (isEscalation(reason, context.reason)) return null;
    return `already in progress: ${context.reason}, requested by ${context.requestedBy}, ${context.secondsLeft().toFixed(1)} s left`;
  }

  async #actionProblem({ action }: ShutdownSettings): Promise<string | null> {
    const why = await this.#options.power.refusal(action);
    return why === null ? null : `safe_shutdown.action is ${action}, ${why}`;
  }

  #refuse(call: ShutdownCall, source: ShutdownSource, why: string): ShutdownReply {
    const { monotonicSeconds } = this.#options.clocks;
    this.#counts.refused += 1;
    this.#register.add(this.#record(call, source, 'refused', why), monotonicSeconds());
    return { success: false, message: `refused: ${why}` };
  }

  #record(call: ShutdownCall, source: ShutdownSource, outcome: ShutdownOutcome, message: string): ShutdownRecord {
    const { bootId, clocks } = this.#options;
    const nowMs = clocks.wallMilliseconds();
    const { action } = this.#settings;
    return recordOf(call, source, {
      request_id: this.#uniqueId(nowMs),
      timestamp: isoUtc(nowMs),
      action,
      outcome,
      message,
      boot_id: bootId,
    });
  }

  #accept(call: ShutdownCall, source: ShutdownSource, request: ShutdownRequest, settings: ShutdownSettings): ShutdownReply {
    const { records, flushStore, log, power, runners } = this.#options;
    const { action } = settings;
    const { reason, requestedBy, timeoutSeconds } = request;
    const record = this.#record(call, source, 'in_progress', 'accepted');
    const secondsLeft = this.#countdown(timeoutSeconds);
    const context: ShutdownContext = { requestId: record.request_id, reason, requestedBy, action, secondsLeft };
    const steps = runners(settings);
    this.#saving = records.recordShutdown(record);
    const recorded = async (): Promise<void> => void (await this.#saving);
    const report: Report = (...parts) => this.#report(...parts);
    const end: ProcedureOptions['end'] = (outcome) => this.#end(outcome);
    const procedure = new Procedure({ context, timeoutSeconds, ...steps, recorded, flushStore, power, report, end });
    this.#counts.accepted += 1;
    this.#running = { procedure, records: [record] };
    log('notice', 'safe shutdown accepted', { reason, requested_by: requestedBy, timeout: timeoutSeconds, ...source });
    this.#ended = procedure.run();
    const message = `accepted: ${action} for ${reason} within ${timeoutSeconds} s; request ${record.request_id}`;
    return { success: true, message };
  }

  /** The shutdown in progress continues for this request's reason, with the shorter of both deadlines, and keeps its steps and action. */
  #escalate(call: ShutdownCall, source: ShutdownSource, request: ShutdownRequest, running: Running): ShutdownReply {
    const { log } = this.#options;
    const { reason, requestedBy, timeoutSeconds } = request;
    const before = running.procedure.context;
    const { action, requestId } = before;
    const requested = this.#countdown(timeoutSeconds);
    const secondsLeft = (): number => Math.min(before.secondsLeft(), requested());
    const record = { ...this.#record(call, source, 'in_progress', 'escalated'), action, step: running.records[0].step };
    this.#counts.accepted += 1;
    running.records = [...running.records, record];
    log('notice', 'safe shutdown escalated', { reason, requested_by: requestedBy, timeout: timeoutSeconds, ...source });
    running.procedure.escalate({ ...before, reason, requestedBy, secondsLeft }, timeoutSeconds);
    this.#saving = this.#save(running.records);
    const within = `${action} for ${reason} within ${secondsLeft().toFixed(1)} s`;
    const message = `escalated: ${within}, requested for ${before.reason} by ${before.requestedBy}; request ${requestId}`;
    return { success: true, message };
  }

  /** Seconds left of a time that begins now, at least 0. */
  #countdown(seconds: number): () => number {
    const { clocks } = this.#options;
    const deadline = clocks.monotonicSeconds() + seconds;
    return () => Math.max(0, deadline - clocks.monotonicSeconds());
  }

  #save(records: readonly ShutdownRecord[]): Promise<unknown> {
    return Promise.all(records.map((record) => this.#options.records.recordShutdown(record)));
  }

  /** Logs, publishes and records a report of a step. */
  #report(...[state, step, level, text]: Parameters<Report>): void {
    const running = this.#running as Running;
    const { context } = running.procedure;
    const { log, publish } = this.#options;
    const message = truncateMessage(text);
    log(level, `safe shutdown, ${step}: ${message}`, { request_id: context.requestId });
    const [first, ...others] = running.records;
    running.records = [{ ...first, step, message }, ...others.map((record) => ({ ...record, step, message }))];
    if (first.step !== step) this.#saving = this.#save(running.records);
    const progress: ShutdownProgress = {
      request_id: context.requestId,
      state,
      step,
      reason: context.reason,
      requested_by: context.requestedBy,
      action: context.action,
      seconds_left: roundToMilliseconds(context.secondsLeft()),
      message,
      timestamp: this.#now(),
    };
    try {
      publish(progress);
    } catch (error) {
      log('error', 'safe shutdown progress not published', { error: (error as Error).message });
    }
  }

  async #end(outcome: 'completed' | 'aborted'): Promise<void> {
    const { records } = this.#running as Running;
    const ended = this.#now();
    this.#last = records.map((record) => ({ ...record, outcome, ended }));
    this.#running = null;
    await this.#save(this.#last);
  }

  /** Logs what would block a request before there is one. */
  async #logBlockers(): Promise<void> {
    const { log, runners } = this.#options;
    if (!this.#settings.enabled) return;
    void this.#checkPower();
    await runners(this.#settings)
      .hooks()
      .catch((error: Error) => log('warning', 'shutdown hooks not run', { error: error.message }));
  }

  async #checkPower(): Promise<void> {
    const settings = this.#settings;
    await this.#options.power.prepare(settings.action);
    const problem = await this.#actionProblem(settings);
    if (problem !== null) this.#options.log('warning', `safe shutdown is not possible: ${problem}`);
  }

  #now(): string {
    return isoUtc(this.#options.clocks.wallMilliseconds());
  }
}

/**
 * Of accepted requests, newest first: those of the last shutdown, oldest first. A request that escalated another one ends together with
 * it, and apart from that two shutdowns cannot overlap.
 */
function ofLastShutdown(accepted: readonly ShutdownRecord[]): readonly ShutdownRecord[] {
  return accepted.filter(({ ended }) => ended === accepted[0]?.ended).reverse();
}

/** How often aggregated refusals are saved. */
const SAVE_SECONDS = 60;

/** Logs and records every refusal, individually or, in a burst, aggregated. */
class RefusalRegister {
  readonly #records: ShutdownRecords;
  readonly #log: Log;
  readonly #tally = new RefusalTally();
  #timer: NodeJS.Timeout | null = null;

  constructor(records: ShutdownRecords, log: Log) {
    this.#records = records;
    this.#log = log;
  }

  add(refusal: ShutdownRecord, nowSeconds: number): void {
    const alone = this.#tally.add(refusal, nowSeconds);
    if (alone) void this.#save(alone);
    else this.#timer ??= setTimeout(() => void this.flush(), SAVE_SECONDS * 1000).unref();
  }

  /** Saves the refusals aggregated so far. */
  async flush(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const together = this.#tally.due();
    if (together) await this.#save(together);
  }

  async #save(record: ShutdownRecord): Promise<void> {
    const { address, calls, message, port, reason, requested_by, timeout, user } = record;
    this.#log('warning', 'safe shutdown refused', { why: message, reason, requested_by, timeout, address, port, user, calls });
    await this.#records.recordShutdown(record);
  }
}
