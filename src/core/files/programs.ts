/**
 * Paths of the other programs and files of the product: beside the bundle in dist/, or among the sources if these run without a bundle, as
 * in tests.
 */
const here = import.meta.url;
const fromSources = here.endsWith('.ts');

const resolve = (source: string, built: string): URL => new URL(fromSources ? source : built, here);

export const PROGRAMS = {
  storeWorker: resolve('../../store/thread/worker.ts', './store-worker.cjs'),
  inventory: resolve('../../system/inventory-program.ts', './inventory.cjs'),
  rosProbe: resolve('../../ros/rclnodejs/probe-program.ts', './ros-probe.cjs'),
  ops: resolve('../../../ops/main.ts', './ops.cjs'),
  harness: resolve('../../../harness/main.ts', './harness.cjs'),
  /** Runs the service of a harness run in a checkout; not in the package. */
  serviceSupervisor: resolve('../../../harness/run/service-supervisor.sh', '../harness/run/service-supervisor.sh'),
  /** The command edge-health. */
  command: resolve('../../../bin/edge-health', '../bin/edge-health'),
  dashboard: resolve('../../../dist/dashboard', './dashboard'),
  openapi: resolve('../../../docs/openapi.json', './openapi.json'),
  /** The default configuration of a checkout. */
  config: resolve('../../../config/edge_health_config.yaml', '../config/edge_health_config.yaml'),
  manifest: resolve('../../../package.json', '../package.json'),
  /** Source of the ROS 2 package with the messages and services. */
  rosInterfaces: resolve('../../../ros2/edge_health_interfaces', '../ros2/edge_health_interfaces'),
  /** The npm package; its addon may be missing. */
  sdNotify: resolve('../../../node_modules/sd-notify', '../node_modules/sd-notify'),
  /** The npm package; only copies of it are loaded. */
  rclnodejs: resolve('../../../node_modules/rclnodejs', '../node_modules/rclnodejs'),
} as const;

/** Options with which bin/edge-health and the commands save memory in long-running programs. They make short-lived programs slower. */
const MEMORY_SAVING =
  /^--(?:lite-mode|optimize-for-size|no-opt|no-maglev|max-semi-space-size|v8-pool-size|external-memory|max-old-space-size)/;

/** Node's options of this process without those that save memory, for a short-lived program with much computation. */
export function optionsForShortLived(): readonly string[] {
  return process.execArgv.filter((option) => !MEMORY_SAVING.test(option));
}
