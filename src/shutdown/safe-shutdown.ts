import { monotonicFactory } from 'ulid';
import { nullAfterTimeout } from '../core/platform/timeout.ts';
import type { Log, Publisher } from '../core/ports.ts';
import {
  checkCall,
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
import { Procedure, type Report } from './procedure.ts';
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
  readonly request: ShutdownRequest;
  readonly context: ShutdownContext;
  record: ShutdownRecord;
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
  /** The last accepted request, once it has ended. */
  #last: ShutdownRecord | null = null;
  #isStopping = false;
  /** The last write of the running request's record. */
  #saving: Promise<void> = Promise.resolve();

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
      const blocker = this.#blocker();
      return blocker === null ? this.#accept(call, source, decided, settings) : this.#refuse(call, source, blocker);
    } catch (error) {
      this.#options.log('error', 'safe shutdown request failed', { error: (error as Error).message });
      return { success: false, message: `refused: ${(error as Error).message}` };
    }
  };

  /** Determines the outcome of the last request of an earlier run, once the store is open, and logs what blocks the next one. */
  async start(): Promise<void> {
    const { bootId, records, log } = this.#options;
    const stored = await records.shutdowns({ accepted: true, limit: 2 }).catch(() => []); // The store logs its own errors.
    // A call may have arrived before the store was open.
    const last = stored.find((record) => this.#known(record) === null);
    if (last) {
      const past = resolvedOutcome(last, bootId, this.#now());
      this.#last ??= past;
      if (past !== last) {
        const { outcome, message, reason, requested_by, request_id } = past;
        log(outcome === 'completed' ? 'notice' : 'warning', `the last safe shutdown: ${message}`, { reason, requested_by, request_id });
        await records.recordShutdown(past);
      }
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
    const requests = stored.map((record) => this.#known(record) ?? resolvedOutcome(record, bootId, this.#now()));
    const last = current?.record ?? this.#last ?? requests.find(({ outcome }) => outcome !== 'refused');
    const outcome = last?.outcome ?? 'none';
    return {
      enabled,
      action,
      problem,
      state: outcome === 'refused' ? 'none' : outcome,
      request_id: last?.request_id ?? null,
      reason: last?.reason ?? null,
      requested_by: last?.requested_by ?? null,
      step: last?.step ?? null,
      seconds_left: current ? roundToMilliseconds(current.context.secondsLeft()) : null,
      started: last?.timestamp ?? null,
      ended: last?.ended ?? null,
      message: last?.message ?? null,
      ...this.#counts,
      requests: requests.map(({ boot_id: _, ...request }) => request),
    };
  }

  /** Returns the newer version in memory of a stored record; null: none. */
  #known({ request_id }: ShutdownRecord): ShutdownRecord | null {
    return [this.#running?.record, this.#last].find((record) => record?.request_id === request_id) ?? null;
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
    return this.#blocker() ?? (await this.#actionBlocker(checked.request, settings)) ?? checked.request;
  }

  /** Why the last step is impossible or forbidden by an inhibitor lock; null: it is not. */
  async #actionBlocker({ reason }: ShutdownRequest, settings: ShutdownSettings): Promise<string | null> {
    const forbidden = this.#options.power.inhibition(settings.action, reason);
    return (await this.#actionProblem(settings)) ?? forbidden;
  }

  /** Why no request can be accepted now; null: one can. */
  #blocker(): string | null {
    if (this.#isStopping) return 'the service is being stopped';
    if (!this.#running) return null;
    const { context, request } = this.#running;
    return `already in progress: ${request.reason}, requested by ${request.requestedBy}, ${context.secondsLeft().toFixed(1)} s left`;
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
    const { records, clocks, flushStore, log, power, runners } = this.#options;
    const { action } = settings;
    const { reason, requestedBy, timeoutSeconds } = request;
    const record = this.#record(call, source, 'in_progress', 'accepted');
    const deadline = clocks.monotonicSeconds() + timeoutSeconds;
    const secondsLeft = (): number => Math.max(0, deadline - clocks.monotonicSeconds());
    const context: ShutdownContext = { requestId: record.request_id, reason, requestedBy, action, secondsLeft };
    const steps = runners(settings);
    this.#saving = records.recordShutdown(record);
    const recorded = (): Promise<void> => this.#saving;
    const report: Report = (...parts) => this.#report(...parts);
    const procedure = new Procedure({ context, timeoutSeconds, ...steps, recorded, flushStore, power, report });
    this.#counts.accepted += 1;
    this.#running = { procedure, request, context, record };
    log('notice', 'safe shutdown accepted', { reason, requested_by: requestedBy, timeout: timeoutSeconds, ...source });
    this.#ended = procedure.run().then((outcome) => this.#end(outcome));
    const message = `accepted: ${action} for ${reason} within ${timeoutSeconds} s; request ${record.request_id}`;
    return { success: true, message };
  }

  /** Logs, publishes and records a report of a step. */
  #report(...[state, step, level, text]: Parameters<Report>): void {
    const running = this.#running as Running;
    const { context, request } = running;
    const { log, publish } = this.#options;
    const message = truncateMessage(text);
    log(level, `safe shutdown, ${step}: ${message}`, { request_id: context.requestId });
    const isNewStep = running.record.step !== step;
    running.record = { ...running.record, step, message };
    if (isNewStep) this.#saving = this.#options.records.recordShutdown(running.record);
    const progress: ShutdownProgress = {
      request_id: context.requestId,
      state,
      step,
      reason: request.reason,
      requested_by: request.requestedBy,
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
    const { record } = this.#running as Running;
    this.#last = { ...record, outcome, ended: this.#now() };
    this.#running = null;
    await this.#options.records.recordShutdown(this.#last);
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
