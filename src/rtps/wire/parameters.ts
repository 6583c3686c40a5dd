import { LIMITS } from '../limits.ts';
import { type Guid, type Locator, Malformed, PID } from './protocol.ts';

/** Encapsulation of a parameter list as payload (10.2.1.2): PL_CDR_LE. */
const PL_CDR_LE = 0x0003;
const PL_CDR_BE = 0x0002;
const LOCATOR_KIND_UDP4 = 1;
const LOCATOR_OCTETS = 24;
/** Parameters per list; more than any implementation sends. */
const MAX_PARAMETERS = 256;
/** 9.3.2: Duration_t's infinity. */
const INFINITE_SECONDS = 0x7fffffff;
/** Data with an unknown parameter that has this bit must be ignored as a whole (9.6.2.2.1, table 9.11). */
const MUST_UNDERSTAND = 0x4000;
const UNDERSTOOD: ReadonlySet<number> = new Set(Object.values(PID));

interface Parameter {
  readonly id: number;
  readonly value: Buffer;
}

/** A received parameter list (9.4.2.11): discovery data, or inline QoS. Values are views of the datagram, decoded on access. */
export class ParameterList {
  readonly #parameters: readonly Parameter[];
  readonly #littleEndian: boolean;
  /** False: the list has an unknown parameter with the must-understand bit, so its owner must be ignored. */
  readonly isUnderstood: boolean;

  private constructor(parameters: readonly Parameter[], littleEndian: boolean, isUnderstood: boolean) {
    this.#parameters = parameters;
    this.#littleEndian = littleEndian;
    this.isUnderstood = isUnderstood;
  }

  /** Reads the list at `offset`; `end` is the offset after its sentinel. Throws Malformed when it is truncated. */
  static read(buffer: Buffer, offset: number, littleEndian: boolean): { readonly list: ParameterList; readonly end: number } {
    const parameters: Parameter[] = [];
    let at = offset;
    let isUnderstood = true;
    for (let i = 0; i < MAX_PARAMETERS; i += 1) {
      if (at + 4 > buffer.length) throw new Malformed('parameter list without sentinel');
      const id = littleEndian ? buffer.readUInt16LE(at) : buffer.readUInt16BE(at);
      const length = littleEndian ? buffer.readUInt16LE(at + 2) : buffer.readUInt16BE(at + 2);
      at += 4;
      if (id === PID.SENTINEL) return { list: new ParameterList(parameters, littleEndian, isUnderstood), end: at };
      if (at + length > buffer.length)
        throw new Malformed(`parameter 0x${id.toString(16)} of ${length} octets, ${buffer.length - at} present`);
      const known = UNDERSTOOD.has(id) ? id : id & ~MUST_UNDERSTAND;
      if ((id & MUST_UNDERSTAND) !== 0 && !UNDERSTOOD.has(known)) isUnderstood = false;
      if (id !== PID.PAD) parameters.push({ id: known, value: buffer.subarray(at, at + length) });
      at += length;
    }
    throw new Malformed(`parameter list of more than ${MAX_PARAMETERS} parameters`);
  }

  /** Reads a payload that is a parameter list; null: it has another representation. */
  static ofPayload(payload: Buffer): ParameterList | null {
    if (payload.length < 4) return null;
    const representation = payload.readUInt16BE(0);
    if (representation !== PL_CDR_LE && representation !== PL_CDR_BE) return null;
    return ParameterList.read(payload, 4, representation === PL_CDR_LE).list;
  }

  /** A copy that does not retain the datagram's memory. */
  detached(): ParameterList {
    return new ParameterList(
      this.#parameters.map(({ id, value }) => ({ id, value: Buffer.from(value) })),
      this.#littleEndian,
      this.isUnderstood,
    );
  }

  has(id: number): boolean {
    return this.#parameters.some((parameter) => parameter.id === id);
  }

  /** The value of the first parameter of this id; throws Malformed if it is shorter than `octets`. */
  bytes(id: number, octets = 0): Buffer | null {
    const value = this.#parameters.find((parameter) => parameter.id === id)?.value;
    if (value && value.length < octets) throw new Malformed(`parameter 0x${id.toString(16)} has ${value.length} octets`);
    return value ?? null;
  }

  uint32(id: number): number | null {
    const value = this.bytes(id, 4);
    return value && this.#uint32(value, 0);
  }

  guid(id: number): Guid | null {
    return this.bytes(id, 16)?.toString('hex', 0, 16) ?? null;
  }

  /** Octets preceded by their length, such as USER_DATA. */
  octets(id: number): Buffer | null {
    const value = this.bytes(id, 4);
    if (!value) return null;
    const length = this.#uint32(value, 0);
    if (length > value.length - 4) throw new Malformed(`parameter 0x${id.toString(16)} of ${length} octets, ${value.length - 4} present`);
    return value.subarray(4, 4 + length);
  }

  /** A string, truncated to `LIMITS.nameOctets`. */
  text(id: number): string | null {
    return this.octets(id)?.toString('utf8', 0, LIMITS.nameOctets).replace(/\0$/, '') ?? null;
  }

  /** A sequence of strings, such as PARTITION. */
  texts(id: number): string[] {
    const value = this.bytes(id, 4);
    if (!value) return [];
    const texts: string[] = [];
    let at = 4;
    for (let i = this.#uint32(value, 0); i > 0; i -= 1) {
      at += -at & 3;
      if (at + 4 > value.length) throw new Malformed('truncated sequence of strings');
      const length = this.#uint32(value, at);
      if (length > value.length - at - 4) throw new Malformed('truncated sequence of strings');
      texts.push(value.toString('utf8', at + 4, at + 4 + length).replace(/\0$/, ''));
      at += 4 + length;
    }
    return texts;
  }

  /**
   * A Duration_t in seconds, possibly Infinity. `skip`: octets before it. Rounded to nanoseconds, the unit of other implementations, so
   * that equal durations are equal here, too.
   */
  seconds(id: number, skip = 0): number | null {
    const value = this.bytes(id, skip + 8);
    if (!value) return null;
    const whole = this.#littleEndian ? value.readInt32LE(skip) : value.readInt32BE(skip);
    if (whole >= INFINITE_SECONDS) return Number.POSITIVE_INFINITY;
    return Math.round((whole + this.#uint32(value, skip + 4) / 2 ** 32) * 1e9) / 1e9;
  }

  /**
   * All usable UDPv4 locators of this id. Other kinds (shared memory, IPv6, TCP) are skipped. So are multicast and broadcast addresses
   * and privileged ports, so that no participant can direct unicast datagrams to whole networks or to system services.
   */
  locators(id: number): Locator[] {
    const found: Locator[] = [];
    for (const { id: parameter, value } of this.#parameters) {
      if (parameter !== id || value.length < LOCATOR_OCTETS || this.#uint32(value, 0) !== LOCATOR_KIND_UDP4) continue;
      const port = this.#uint32(value, 4);
      const address = `${value[20]}.${value[21]}.${value[22]}.${value[23]}`;
      if (port >= FIRST_PORT && port < 65536 && isOfOneMachine(value[20] as number)) found.push({ address, port });
    }
    return found;
  }

  #uint32(value: Buffer, at: number): number {
    return this.#littleEndian ? value.readUInt32LE(at) : value.readUInt32BE(at);
  }
}

/** Lower ports are system ports (RFC 6335). */
const FIRST_PORT = 1024;

/** False for "this network", multicast, reserved and broadcast addresses, by the first octet (RFC 6890). */
function isOfOneMachine(first: number): boolean {
  return first > 0 && first < 224;
}

/** Writes a parameter list, little endian. */
export class ParameterWriter {
  readonly #parts: Buffer[] = [];

  bytes(id: number, value: Uint8Array): this {
    const padded = Buffer.alloc(4 + value.length + (-value.length & 3));
    padded.writeUInt16LE(id, 0);
    padded.writeUInt16LE(padded.length - 4, 2);
    padded.set(value, 4);
    this.#parts.push(padded);
    return this;
  }

  uint32(id: number, ...values: readonly number[]): this {
    const value = Buffer.alloc(4 * values.length);
    values.forEach((number, i) => {
      value.writeUInt32LE(number >>> 0, 4 * i);
    });
    return this.bytes(id, value);
  }

  guid(id: number, guid: Guid): this {
    return this.bytes(id, Buffer.from(guid, 'hex'));
  }

  octets(id: number, value: Uint8Array): this {
    const counted = Buffer.alloc(4 + value.length);
    counted.writeUInt32LE(value.length, 0);
    counted.set(value, 4);
    return this.bytes(id, counted);
  }

  text(id: number, text: string): this {
    return this.octets(id, Buffer.from(`${text}\0`));
  }

  /** `before`: values that precede the Duration_t. */
  seconds(id: number, seconds: number, ...before: readonly number[]): this {
    return this.uint32(id, ...before, Math.floor(seconds), Math.floor((seconds % 1) * 2 ** 32));
  }

  locator(id: number, { address, port }: Locator): this {
    const value = Buffer.alloc(LOCATOR_OCTETS);
    value.writeUInt32LE(LOCATOR_KIND_UDP4, 0);
    value.writeUInt32LE(port, 4);
    value.set(address.split('.').map(Number), 20);
    return this.bytes(id, value);
  }

  /** The list with its sentinel, for inline QoS. */
  list(): Buffer {
    return Buffer.concat([...this.#parts, Buffer.from([PID.SENTINEL, 0, 0, 0])]);
  }

  /** The list with its encapsulation header, for a payload. */
  payload(): Buffer {
    return Buffer.concat([Buffer.from([0, PL_CDR_LE, 0, 0]), this.list()]);
  }
}
