import { type Alert, nodeOfAlertId } from '../../core/alert.ts';
import type { HealthStatus } from '../../core/health-status.ts';
import type { Log } from '../../core/ports.ts';
import { decode } from '../../rtps/cdr.ts';
import { rarely } from '../../rtps/log.ts';
import type { GraphOptions } from '../graph.ts';
import { ALERT, HEALTH_STATUS } from '../interfaces.generated.ts';
import type { MessageType } from '../interfaces.ts';
import { alertFrom, type Checked, healthStatusFrom } from '../messages.ts';

interface Options extends Pick<GraphOptions, 'localNode' | 'log' | 'monotonicSeconds'> {
  readonly listener: {
    onHealthStatus(status: HealthStatus, topic: string): void;
    onAlert(alert: Alert, topic: string): void;
  };
}

/** A conflict of names is shown for so long after it was last noticed. */
const CONFLICT_SECONDS = 60;
const LOG_PERIOD_SECONDS = 60;
/** Messages remembered, sent and received each. */
const REMEMBERED = 1024;

/** What comes in: decoded, checked, told from what this process sent itself, and each message once. */
export class Arrivals {
  readonly #options: Options;
  readonly #log: Log;
  readonly #sent = new Recent();
  readonly #taken = new Recent();
  #conflictSeconds = Number.NEGATIVE_INFINITY;
  #refused = 0;

  constructor(options: Options) {
    this.#options = options;
    this.#log = rarely(options.log, options.monotonicSeconds, LOG_PERIOD_SECONDS);
  }

  get refused(): number {
    return this.#refused;
  }

  /** Another monitor publishes under this one's name; null: none does. */
  get problem(): string | null {
    if (this.#options.monotonicSeconds() - this.#conflictSeconds >= CONFLICT_SECONDS) return null;
    return `another monitor on the graph is named ${this.#options.localNode} too; set node_name`;
  }

  /** What this process sends comes back to it, since it listens where it speaks. */
  willReturnHealth(status: HealthStatus): void {
    this.#sent.add(healthKey(status));
  }

  willReturnAlert(alert: Alert): void {
    this.#sent.add(alertKey(alert));
  }

  /** `twice`: more than one subscription listens to this topic or did, and each may bring the same message. */
  onHealth(serialized: Buffer, topic: string, twice: boolean): void {
    const status = this.#read(HEALTH_STATUS, serialized, topic, healthStatusFrom);
    if (status === null) return;
    if (status.node_name === this.#options.localNode) {
      if (!this.#sent.has(healthKey(status))) this.#onConflict(topic);
    } else if (this.#isNews(status, twice)) this.#options.listener.onHealthStatus(status, topic);
  }

  onAlert(serialized: Buffer, topic: string, twice: boolean): void {
    const alert = this.#read(ALERT, serialized, topic, alertFrom);
    if (alert === null || this.#sent.has(alertKey(alert))) return;
    if (nodeOfAlertId(alert.alert_id) === this.#options.localNode) this.#onConflict(topic);
    else if (this.#isNews(alert, twice)) this.#options.listener.onAlert(alert, topic);
  }

  /** Remembered in any case: a subscription that is added brings the last ones of before once more. */
  #isNews(message: HealthStatus | Alert, twice: boolean): boolean {
    const isFirst = this.#taken.add(JSON.stringify(message));
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
    this.#log('warning', 'message refused', { topic, reason });
    return null;
  }

  #onConflict(topic: string): void {
    this.#conflictSeconds = this.#options.monotonicSeconds();
    const node_name = this.#options.localNode;
    this.#log('warning', 'another monitor on the graph has the same name; give each its own node_name', { node_name, topic });
  }
}

function healthKey({ node_name, timestamp }: HealthStatus): string {
  return `${timestamp} ${node_name}`;
}

function alertKey({ alert_id, severity, timestamp, resolved }: Alert): string {
  return `${timestamp} ${alert_id} ${severity} ${resolved}`;
}

/** The last keys, the oldest forgotten first. */
class Recent {
  readonly #keys = new Set<string>();

  /** False: it was there. */
  add(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    if (this.#keys.size > REMEMBERED) for (const oldest of this.#keys) return this.#keys.delete(oldest);
    return true;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }
}
