export interface StreamEvent {
  /** The last id that was sent, with this event or an earlier one; empty: none yet. */
  readonly id: string;
  readonly kind: string;
  readonly data: string;
}

/** No event of the service comes near it; beyond it the stream is none of ours. */
const MAX_EVENT_CHARACTERS = 1_000_000;

/** Cuts the text of a stream of server-sent events (HTML standard, 9.2.6; lines end with LF or CRLF) into its events. */
export class EventParser {
  readonly #onEvent: (event: StreamEvent) => void;
  #rest = '';
  #id = '';
  #kind = '';
  #data: string | null = null;

  constructor(onEvent: (event: StreamEvent) => void) {
    this.#onEvent = onEvent;
  }

  /** Takes the next piece, cut anywhere. Throws when what comes is no stream of events. */
  take(piece: string): void {
    const text = this.#rest === '' ? piece : this.#rest + piece;
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      this.#line(text.slice(from, text[end - 1] === '\r' && end > from ? end - 1 : end));
      from = end + 1;
    }
    this.#rest = text.slice(from);
    if (this.#rest.length + (this.#data?.length ?? 0) > MAX_EVENT_CHARACTERS)
      throw new Error('an event without an end: is there something between the service and this machine?');
  }

  #line(line: string): void {
    if (line === '') {
      this.#dispatch();
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // A comment keeps the connection alive.
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') this.#data = this.#data === null ? value : `${this.#data}\n${value}`;
    else if (name === 'event') this.#kind = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
  }

  /** What has no data is no event, as the end of a stream's head. */
  #dispatch(): void {
    const data = this.#data;
    const kind = this.#kind;
    this.#data = null;
    this.#kind = '';
    if (data !== null) this.#onEvent({ id: this.#id, kind, data });
  }
}
