import type { HealthStatus } from '../../core/health-status.ts';
import { nullAfterTimeout } from '../../core/platform/timeout.ts';
import { isoUtc } from '../../core/time/time.ts';
import { PROBE_NAME } from '../names.ts';
import type { ProbeAnswer, ProbeRequest } from './probe.ts';
import { RclnodejsTransport } from './transport.ts';

const RETURN_TIMEOUT_SECONDS = 5;
/** The message is published repeatedly, since the volatile subscription may be matched only after the first ones. */
const PUBLISH_MS = 50;
/** Short, so that the process ends soon. */
const SPIN_MS = 20;

/** Performs the service's operations with rclnodejs once. */
async function tryOut({ prepared, discovery, names, enclave, publish }: ProbeRequest): Promise<void> {
  const returned = Promise.withResolvers<true>();
  const status: HealthStatus = {
    cpu_percent: 1.5,
    memory_percent: null,
    disk_percent: null,
    temperature: null,
    status: 'UNKNOWN',
    node_name: PROBE_NAME,
    timestamp: isoUtc(Date.now()),
  };
  const transport = new RclnodejsTransport({
    prepared,
    discovery,
    names,
    enclave,
    shutdownServer: null,
    spinMilliseconds: SPIN_MS,
    localNode: '',
    observe: 'always',
    parameters: () => [],
    publishSeconds: PUBLISH_MS / 1000,
    diagnostics: () => {
      throw new Error('the probe does not publish diagnostics');
    },
    log: (_level, message, fields) => process.stderr.write(`${message} ${JSON.stringify(fields ?? {})}\n`),
    monotonicSeconds: () => performance.now() / 1000,
    listener: {
      onHealthStatus: (arrived) => {
        if (arrived.timestamp === status.timestamp) returned.resolve(true);
      },
      onAlert: () => undefined,
      onSafeShutdown: async () => ({ success: false, message: 'edge-health is starting; try again' }),
    },
  });
  await transport.start();
  const publishing = publish ? setInterval(() => transport.publishHealth(status), PUBLISH_MS) : null;
  try {
    if (publish && (await nullAfterTimeout(RETURN_TIMEOUT_SECONDS, returned.promise)) === null)
      throw new Error('a published message did not come back within 5 s');
  } finally {
    if (publishing) clearInterval(publishing);
    await transport.stop();
  }
}

function answer(found: ProbeAnswer): void {
  process.stdout.write(`${JSON.stringify(found)}\n`);
}

tryOut(JSON.parse(process.argv[2] ?? '') as ProbeRequest).then(
  () => answer({ ok: true }),
  (error: Error) => {
    answer({ ok: false, error: error.message });
    process.exitCode = 1;
  },
);
