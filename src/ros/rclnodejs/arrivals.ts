import { type Alert, changeKey } from '../../core/alerts/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import { Recent } from '../../core/recent.ts';
import { decode } from '../../rtps/wire/cdr.ts';
import type { GraphOptions } from '../graph.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { alertFrom, type Checked, healthStatusFrom } from '../messages.ts';

interface Options extends Pick<GraphOptions, 'localNode' | 'log'> {
  readonly listener: {
    onHealthStatus(status: HealthStatus, topic: string): void;
    onAlert(alert: Alert, topic: string): void;
    /** Another monitor published a status under the name `localNode`. */
    onConflict?(topic: string): void;
  };
}

/** Number of messages remembered, separately for sent and received ones. */
const MAX_REMEMBERED = 1024;

/** Handles received messages: decodes and validates them, and drops duplicates and those of this process. */
export class Arrivals {
  readonly #options: Options;
  readonly #sent = new Recent(MAX_REMEMBERED);
  readonly #received = new Recent(MAX_REMEMBERED);
  #refused = 0;

  constructor(options: Options) {
    this.#options = options;
  }

  get refused(): number {
    return this.#refused;
  }

  /** Remembers a message of this process, since its own subscriptions also receive it. */
  addSentHealth(status: HealthStatus): void {
    this.#sent.add(healthKey(status));
  }

  addSentAlert(alert: Alert): void {
    this.#sent.add(changeKey(alert));
  }

  /** `twice`: the topic has or had more than one subscription, so that the same message may be received several times. */
  onHealth(serialized: Buffer, topic: string, twice: boolean): void {
    const status = this.#read(HEALTH_STATUS, serialized, topic, healthStatusFrom);
    if (status === null) return;
    if (status.node_name === this.#options.localNode) {
      if (!this.#sent.has(healthKey(status))) this.#options.listener.onConflict?.(topic);
    } else if (this.#isNew(status, twice)) this.#options.listener.onHealthStatus(status, topic);
  }

  onAlert(serialized: Buffer, topic: string, twice: boolean): void {
    const alert = this.#read(ALERT, serialized, topic, alertFrom);
    if (alert === null || this.#sent.has(changeKey(alert))) return;
    if (this.#isNew(alert, twice)) this.#options.listener.onAlert(alert, topic);
  }

  /** Remembers every message, because a subscription that is added later delivers the last ones again. */
  #isNew(message: HealthStatus | Alert, twice: boolean): boolean {
    const isFirst = this.#received.add(JSON.stringify(message));
    return isFirst || !twice;
  }

  #read<T>(type: MessageType, serialized: Buffer, topic: string, check: (message: unknown) => Checked<T>): T | null {
    let reason: string;
    try {
      const checked = check(decode(type, serialized));
      if (checked.ok) return checked.value;
      reason = checked.reason;
    } catch (error) {
      reason = (error as Error).message;
    }
    this.#refused += 1;
    this.#options.log('warning', 'message refused', { topic, reason });
    return null;
  }
}

function healthKey({ node_name, timestamp }: HealthStatus): string {
  return `${timestamp} ${node_name}`;
}
