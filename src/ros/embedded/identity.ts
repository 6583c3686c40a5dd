/** SROS2's name of the place that security rules are looked up at, as a participant's USER_DATA; peers show it. */
export const ENCLAVE_DATA = 'enclave=/;';

/** A participant's prefix, unlike any other, which is all that is asked of it (8.2.4.2): no secret. Begins with the vendor id (9.3.1.5). */
export function newPrefix(): string {
  const octets = Buffer.alloc(12);
  octets.writeUInt32BE((process.pid ^ (Date.now() >>> 0)) >>> 0, 2);
  for (let i = 6; i < 12; i += 1) octets[i] = Math.floor(Math.random() * 256);
  return octets.toString('hex');
}
