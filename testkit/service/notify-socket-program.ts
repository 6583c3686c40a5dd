/**
 * Receives datagrams of a Unix socket and prints each as a line of JSON with the PID of its sender; prints `{}` once the socket is
 * bound. Argument: the path of the socket, with `@` for the NUL of an abstract one. Needs --experimental-ffi; the parent kills it.
 */
import { openLibc } from '../../src/core/platform/libc.ts';

/** The part of node:ffi that openLibc does not use. */
interface Pointers {
  getRawPointer(buffer: Buffer): bigint;
}

const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOL_SOCKET = 1;
const SO_PASSCRED = 16;
/** struct msghdr of recvmsg(2) on 64 bits: name, its length, vector, its count, control, its length, flags. */
const MSGHDR_BYTES = 56;
/** struct cmsghdr: length, level, type; after it struct ucred: pid, uid, gid. */
const CMSGHDR_BYTES = 16;
const CONTROL_BYTES = CMSGHDR_BYTES + 16;
const MAX_DATAGRAM_BYTES = 65_536;

const { getRawPointer } = process.getBuiltinModule('node:ffi' as 'node:module') as unknown as Pointers;
const libc = openLibc({
  socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
  setsockopt: { arguments: ['i32', 'i32', 'i32', 'buffer', 'u32'], return: 'i32' },
  bind: { arguments: ['i32', 'buffer', 'u32'], return: 'i32' },
  recvmsg: { arguments: ['i32', 'buffer', 'i32'], return: 'i64' },
  prctl: { arguments: ['i32', 'u64', 'u64', 'u64', 'u64'], return: 'i32' },
});
const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;
libc.prctl(PR_SET_PDEATHSIG, BigInt(SIGKILL), 0n, 0n, 0n);

const [, , path = ''] = process.argv;
const socket = libc.socket(AF_UNIX, SOCK_DGRAM, 0);
const yes = Buffer.alloc(4);
yes.writeInt32LE(1);
libc.setsockopt(socket, SOL_SOCKET, SO_PASSCRED, yes, yes.length);
const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`);
const address = Buffer.concat([Buffer.from([AF_UNIX, 0]), name]);
if (libc.bind(socket, address, address.length) !== 0) throw new Error(`cannot bind ${path}`);
print({});

const data = Buffer.alloc(MAX_DATAGRAM_BYTES);
const control = Buffer.alloc(CONTROL_BYTES);
const vector = Buffer.alloc(16);
const message = Buffer.alloc(MSGHDR_BYTES);
for (;;) {
  vector.writeBigUInt64LE(getRawPointer(data), 0);
  vector.writeBigUInt64LE(BigInt(data.length), 8);
  message.fill(0);
  message.writeBigUInt64LE(getRawPointer(vector), 16);
  message.writeBigUInt64LE(1n, 24);
  message.writeBigUInt64LE(getRawPointer(control), 32);
  message.writeBigUInt64LE(BigInt(control.length), 40);
  const length = Number(libc.recvmsg(socket, message, 0));
  if (length < 0) continue; // The call was interrupted (EINTR).
  print({ pid: control.readInt32LE(CMSGHDR_BYTES), state: data.toString('utf8', 0, length) });
}

function print(line: object): void {
  process.getBuiltinModule('node:fs').writeSync(1, `${JSON.stringify(line)}\n`);
}
