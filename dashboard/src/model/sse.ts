/** One server-sent event. */
export interface ServerEvent {
  readonly event: string;
  readonly data: string;
}

/** Limit for the length of an event in characters; the service's events have a few hundred. */
const MAX_EVENT_LENGTH = 1 << 20;

/**
 * Parses a text/event-stream that arrives in pieces of any size, as the HTML standard defines it: lines end in LF, CR or CRLF, a
 * comment begins with a colon, an event ends with an empty line, and an event cut off by the end of the stream is discarded.
 */
export class SseParser {
  #rest = '';
  #afterCr = false;
  #started = false;
  #event = '';
  #data: string[] = [];
  #dataLength = 0;
  #id: string;
  #lastEventId: string;

  /** `lastEventId`: from the previous stream; valid until this stream sends another. */
  constructor(lastEventId = '') {
    this.#id = lastEventId;
    this.#lastEventId = lastEventId;
  }

  /** Id of the last complete event, for the header Last-Event-ID. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** Returns the events that this piece completes. */
  push(piece: string): ServerEvent[] {
    let text = piece;
    if (!this.#started && text !== '') {
      this.#started = true;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    // A CRLF may be split between two pieces; its LF ends no further line.
    if (this.#afterCr && text !== '') {
      this.#afterCr = false;
      if (text.startsWith('\n')) text = text.slice(1);
    }
    if (text.endsWith('\r')) this.#afterCr = true;
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop() ?? '';
    if (this.#rest.length + this.#dataLength > MAX_EVENT_LENGTH) throw new RangeError('an event is too long');
    const events: ServerEvent[] = [];
    for (const line of lines) {
      const event = this.#line(line);
      if (event) events.push(event);
    }
    return events;
  }

  #line(line: string): ServerEvent | null {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'data') {
      this.#data.push(value);
      this.#dataLength += value.length;
      if (this.#dataLength > MAX_EVENT_LENGTH) throw new RangeError('an event is too long');
    }
    return null;
  }

  #dispatch(): ServerEvent | null {
    this.#lastEventId = this.#id;
    const event = this.#data.length === 0 ? null : { event: this.#event || 'message', data: this.#data.join('\n') };
    this.#event = '';
    this.#data = [];
    this.#dataLength = 0;
    return event;
  }
}
