/**
 * Where the other programs and files of the product lie: beside the bundle in dist/, or in the sources when those run
 * by themselves (tests).
 */
const here = import.meta.url;
const fromSources = here.endsWith('.ts');

const place = (source: string, built: string): URL => new URL(fromSources ? source : built, here);

export const PROGRAMS = {
  storeWorker: place('../store/worker.ts', './store-worker.cjs'),
  inventory: place('../system/inventory-program.ts', './inventory.cjs'),
  rosProbe: place('../ros/rclnodejs/probe-program.ts', './ros-probe.cjs'),
  ops: place('../../ops/main.ts', './ops.cjs'),
  harness: place('../../harness/main.ts', './harness.cjs'),
  /** Runs the service of a harness run in a checkout; not in the package. */
  serviceSupervisor: place('../../harness/run/service-supervisor.sh', '../harness/run/service-supervisor.sh'),
  /** The product as it is called. */
  command: place('../../bin/edge-health', '../bin/edge-health'),
  dashboard: place('../../dist/dashboard', './dashboard'),
  openapi: place('../../docs/openapi.json', './openapi.json'),
  /** The default configuration of a checkout. */
  config: place('../../config/edge_health_config.yaml', '../config/edge_health_config.yaml'),
  manifest: place('../../package.json', '../package.json'),
  /** The package with the messages and services, in source. */
  rosInterfaces: place('../../ros2/edge_health_interfaces', '../ros2/edge_health_interfaces'),
  /** As npm installed it; its addon may be missing. */
  sdNotify: place('../../node_modules/sd-notify', '../node_modules/sd-notify'),
  /** As npm installed it; only copies of it are ever loaded. */
  rclnodejs: place('../../node_modules/rclnodejs', '../node_modules/rclnodejs'),
} as const;
