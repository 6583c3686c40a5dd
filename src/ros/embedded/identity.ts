/** USER_DATA of a participant: the SROS2 enclave, which ROS 2 tools display. */
export const ENCLAVE_DATA = 'enclave=/;';

/** A unique GUID prefix (8.2.4.2), beginning with the vendor id (9.3.1.5). It is not secret, so Math.random suffices. */
export function newPrefix(): string {
  const octets = Buffer.alloc(12);
  octets.writeUInt32BE((process.pid ^ (Date.now() >>> 0)) >>> 0, 2);
  for (let i = 6; i < 12; i += 1) octets[i] = Math.floor(Math.random() * 256);
  return octets.toString('hex');
}
