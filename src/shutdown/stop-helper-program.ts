import { Socket } from 'node:net';
import { configPath } from '../config/load.ts';
import { createLogger } from '../core/platform/log.ts';
import { helpToStop } from './stop-helper.ts';

// Run as root by edge-health-stop@.service with a connection as its standard input.

const NO_CHECKOUT = '/etc/edge-health/edge_health_config.yaml';
const { environment, log } = { environment: process.env, log: createLogger(process.stderr, 'info').log };
helpToStop({
  connection: new Socket({ fd: 0, readable: true, writable: true }),
  configFile: configPath(null, environment, NO_CHECKOUT),
  environment,
  log,
  uid: 0,
}).then(() => process.exit());
