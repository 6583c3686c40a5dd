import { hostname } from 'node:os';
import type { Config } from '../config/schema.ts';
import type { Alert, Thresholds } from '../core/alerts/alert.ts';
import { PROGRAMS } from '../core/files/programs.ts';
import { rosPaths } from '../core/files/ros-paths.ts';
import type { Log } from '../core/ports.ts';
import type { Clocks } from '../core/time/time.ts';
import { chooseTransport, type TransportChoice } from '../ros/choose.ts';
import type { DiagnosticContext } from '../ros/diagnostics.ts';
import { discoverySettings } from '../ros/environment.ts';
import type { DiscoverySettings, GraphListener, GraphNames, GraphOptions, RosTransport } from '../ros/graph.ts';
import { findRos } from '../ros/rclnodejs/prepared.ts';
import { probe } from '../ros/rclnodejs/probe.ts';
import { isSecurityEnforced } from '../ros/rclnodejs/ros-variables.ts';
import { judgingParameters } from './judge.ts';
import { PublishedAlerts } from './published-alerts.ts';
import { RosGraph } from './ros-graph.ts';

export interface JoinOptions {
  readonly config: Config;
  readonly dataPath: string;
  readonly names: GraphNames;
  /** `node_name` of the statuses of this process. */
  readonly localNode: string;
  /** SROS2 enclave given on the command line; null: taken from the environment. */
  readonly enclave: string | null;
  readonly environment: NodeJS.ProcessEnv;
  readonly clocks: Clocks;
  readonly log: Log;
  readonly listener: GraphListener;
  readonly thresholds: () => Thresholds;
  readonly openAlerts: () => readonly Alert[];
  /** The configuration in force. */
  readonly currentConfig: () => Config;
  readonly isExpected: DiagnosticContext['isExpected'];
}

/** The connection to the ROS 2 graph according to configuration and environment; start() begins to join. */
export function joinGraph(options: JoinOptions): RosGraph {
  const { config, environment, log } = options;
  const wallMilliseconds = (): number => options.clocks.wallMilliseconds();
  const published = new PublishedAlerts(options.dataPath, log);
  const { transport } = config.ros;
  const found = discoverySettings(config.ros, environment);
  if (!found.ok) {
    const off: TransportChoice = { transport: 'off', reason: found.problem, fallback: true, prepared: null };
    return new RosGraph({
      domainId: null,
      choose: async () => off,
      create: unreachable,
      embeddedInstead: false,
      published,
      wallMilliseconds,
      log,
    });
  }
  const { discovery } = found;
  if (transport !== 'off') for (const note of found.notes) log('warning', note);
  const graph = graphOptions(options, discovery);
  const paths = rosPaths(options.dataPath);
  const circumstances = { discoveryRange: discovery.discoveryRange, securityEnforced: isSecurityEnforced(environment) };
  const probing = { program: PROGRAMS.rosProbe, environment, discovery, names: options.names, enclave: options.enclave };
  return new RosGraph({
    domainId: discovery.domainId,
    choose: () =>
      chooseTransport(transport, circumstances, {
        find: () => findRos(environment, paths),
        probe: (prepared) => probe(prepared, probing),
      }),
    create: (choice) => create(choice, graph, options),
    embeddedInstead: transport === 'auto' && !circumstances.securityEnforced,
    published,
    wallMilliseconds,
    log,
  });
}

function graphOptions(
  { clocks, config, currentConfig, listener, localNode, isExpected, log, names, openAlerts, thresholds }: JoinOptions,
  discovery: DiscoverySettings,
): GraphOptions {
  return {
    discovery,
    names,
    listener,
    localNode,
    observe: config.ros.observe,
    diagnostics: () => ({ hostname: hostname(), thresholds: thresholds(), openAlerts: openAlerts(), isExpected }),
    parameters: () => judgingParameters(currentConfig()),
    publishSeconds: 1 / config.publish_frequency,
    log,
    monotonicSeconds: () => clocks.monotonicSeconds(),
  };
}

/** Transports are imported on demand to save memory. */
async function create(
  { prepared, transport }: TransportChoice,
  graph: GraphOptions,
  { clocks, config, enclave, environment }: JoinOptions,
): Promise<RosTransport> {
  const wallMilliseconds = (): number => clocks.wallMilliseconds();
  if (transport === 'rclnodejs' && prepared) {
    const { RclnodejsTransport } = await import('../ros/rclnodejs/transport.ts');
    // rcl does not identify callers, so its service is for graphs that only authorized callers can join.
    const isGuarded = isSecurityEnforced(environment) || config.safe_shutdown.trust_network;
    const isBeside = graph.listener.onSafeShutdown !== null && !isGuarded;
    const { EmbeddedShutdownServer } = await import('../ros/embedded/shutdown-server.ts');
    const shutdownServer = isBeside ? new EmbeddedShutdownServer({ ...graph, wallMilliseconds }) : null;
    return new RclnodejsTransport({ ...graph, prepared, enclave, shutdownServer });
  }
  const { EmbeddedTransport } = await import('../ros/embedded/transport.ts');
  return new EmbeddedTransport({ ...graph, wallMilliseconds });
}

async function unreachable(): Promise<never> {
  throw new Error('no transport was chosen');
}
