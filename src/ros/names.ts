import { isNodeName as isMonitorName } from '../core/node-name.ts';
import type { Appliance, ObserveMode } from '../core/observer.ts';
import type { GraphNames } from './graph.ts';

/** A rule of `--ros-args -r`. `node`: name, without namespace, of the node that it applies to; null: all nodes. */
export type RemapRule =
  | { readonly kind: 'namespace'; readonly to: string }
  | { readonly kind: 'node'; readonly node: string | null; readonly to: string }
  /** `any`: topics and services. Names as given: absolute, relative to the namespace, or relative to the node with `~/`. */
  | { readonly kind: 'topic' | 'service' | 'any'; readonly node: string | null; readonly from: string; readonly to: string };

/** The configuration keys that determine names. */
export interface NameConfig {
  readonly node_name: string;
  /** With or without a leading slash; null: none. */
  readonly namespace: string | null;
}

const TOKEN = '[A-Za-z_][A-Za-z0-9_]*';
const NODE_NAME = new RegExp(`^${TOKEN}$`);
const NAMESPACE = new RegExp(`^/(?:${TOKEN}(?:/${TOKEN})*)?$`);
const NAME = new RegExp(`^(?:~|(?:~/|/)?${TOKEN}(?:/${TOKEN})*)$`);
/** Full topic names are limited to 249 characters (rmw_validate_full_topic_name); these limits keep their sum below that. */
const MAX_NODE_NAME = 128;
const MAX_NAMESPACE = 120;
const MAX_NAME = 120;

export function isNodeName(text: string): boolean {
  return text.length <= MAX_NODE_NAME && NODE_NAME.test(text);
}

/** An absolute namespace; `/` alone is the root. */
export function isNamespace(text: string): boolean {
  return text.length <= MAX_NAMESPACE && NAMESPACE.test(text);
}

/** A topic or service: absolute, relative, or private with `~/`. */
export function isName(text: string): boolean {
  return text.length <= MAX_NAME && NAME.test(text);
}

const APPLIANCES = '/_edge_health/';

/** The hidden topic that announces an appliance, its name and its observe mode; no message is published on it. */
export function applianceTopic({ name, mode }: Appliance): string {
  return `${APPLIANCES}${mode}/${name}`;
}

/** Whether a topic has the prefix of appliance topics. */
export function isApplianceTopic(topic: string): boolean {
  return topic.startsWith(APPLIANCES);
}

/** The appliance that a topic announces; null: none. */
export function applianceOf(topic: string): Appliance | null {
  const [, mode, name] = /^\/_edge_health\/(auto|always|never)\/(.+)$/.exec(topic) ?? [];
  return mode === undefined || name === undefined || !isMonitorName(name) ? null : { name, mode: mode as ObserveMode };
}

/** Namespace and node of the self-test of rclnodejs. */
export const PROBE_NAME = '_edge_health_probe';

/** Whether a topic belongs to a self-test, which must not be read as a robot's. */
export function isProbeTopic(topic: string): boolean {
  return topic.startsWith(`/${PROBE_NAME}/`);
}

/** The default of `node_name`, with which the helper nodes have the names of the specification. */
const DEFAULT_NODE_NAME = 'health_monitor';

/**
 * The names on the graph: the configured ones, remapped by the rules of rcl (remap.c), where the first matching rule applies. A rule
 * `__node` for all nodes renames only the health monitor, since node names must be unique. Processes of several roles share a graph:
 * with a configured `node_name` the helper nodes get it as a prefix (`edge_brain_alert_publisher`); rules may omit the prefix.
 */
export function graphNames(config: NameConfig, rules: readonly RemapRule[]): GraphNames {
  const given = config.namespace === null ? '/' : absolute(config.namespace);
  const namespace = rules.find((rule) => rule.kind === 'namespace')?.to ?? given;
  const prefix = config.node_name === DEFAULT_NODE_NAME ? '' : `${config.node_name}_`;
  const node = (name: string, matches: (of: string | null) => boolean): string =>
    rules.find((rule) => rule.kind === 'node' && matches(rule.node))?.to ?? name;
  const helper = (name: string): string => node(prefix + name, (of) => of === prefix + name || of === name);
  const nodes = {
    healthMonitor: node(config.node_name, (of) => of === config.node_name || of === null),
    thresholdMonitor: helper('threshold_monitor'),
    alertPublisher: helper('alert_publisher'),
    safeShutdown: helper('safe_shutdown'),
  };
  const named = (kind: 'topic' | 'service', owner: string, name: string): string => {
    const whole = expand(name, namespace, owner);
    for (const rule of rules) {
      if (rule.kind !== kind && rule.kind !== 'any') continue;
      if (rule.node !== null && rule.node !== owner && prefix + rule.node !== owner) continue;
      if (expand(rule.from, namespace, owner) === whole) return expand(rule.to, namespace, owner);
    }
    return whole;
  };
  return {
    namespace,
    nodes,
    topics: {
      healthStatus: named('topic', nodes.healthMonitor, 'health_status'),
      alerts: named('topic', nodes.alertPublisher, 'alerts'),
      openAlerts: named('topic', nodes.alertPublisher, 'open_alerts'),
      shutdownStatus: named('topic', nodes.safeShutdown, 'shutdown_status'),
      // Absolute, as in diagnostic_updater: the aggregator and viewers subscribe to it for all robots.
      diagnostics: named('topic', nodes.healthMonitor, '/diagnostics'),
    },
    services: {
      safeShutdown: named('service', nodes.safeShutdown, 'safe_shutdown'),
      ownSafeShutdown: named('service', nodes.healthMonitor, '~/safe_shutdown'),
    },
  };
}

/**
 * `node_name` of health statuses and alert ids: the health monitor's name, preceded by its namespace (`robot1/health_monitor`), so that
 * it differs between machines with the same configuration.
 */
export function monitorName({ namespace, nodes }: GraphNames): string {
  return namespace === '/' ? nodes.healthMonitor : `${namespace.slice(1)}/${nodes.healthMonitor}`;
}

/** The fully qualified name of a node: `/robot1/health_monitor`. */
export function nodePath(namespace: string, name: string): string {
  return namespace === '/' ? `/${name}` : `${namespace}/${name}`;
}

function absolute(namespace: string): string {
  return namespace.startsWith('/') ? namespace : `/${namespace}`;
}

function expand(name: string, namespace: string, node: string): string {
  if (name.startsWith('/')) return name;
  return nodePath(namespace, name.startsWith('~') ? node + name.slice(1) : name);
}
