import type { StatusDocument } from '../../src/client/documents.ts';
import { findProgram, runProgram } from '../lib/run-program.ts';
import { type Check, type CheckContext, type CheckResult, resultsFor } from './check.ts';

type Node = StatusDocument['nodes'][number];

/** Whether a node of this name is in the output of `ros2 node list`, which prefixes names with namespaces. */
export function isOnGraph(name: string, graph: readonly string[]): boolean {
  return graph.some((entry) => entry === `/${name}` || entry.endsWith(`/${name}`));
}

/** A node of `ops.check.nodes` on an appliance that does not observe remote nodes, because `observers` do. */
export function noteUnobserved(name: string, observers: readonly string[]): CheckResult {
  return resultsFor(`node ${name}`).note(`observed by ${observers.join(', ')} instead`, 'check it there, or set ros.observe: always');
}

/** Evaluates a node of `ops.check.nodes`. `graph`: names on the ROS 2 graph, or null if it was not read. */
export function evaluateNode(name: string, node: Node | undefined, maxAgeSeconds: number, graph: readonly string[] | null): CheckResult {
  const onGraph = graph === null ? null : isOnGraph(name, graph);
  const age = node?.age_seconds ?? null;
  const { critical, ok } = resultsFor(`node ${name}`, { age_seconds: age, status: node?.status ?? null, on_graph: onGraph });
  if (age !== null && age <= maxAgeSeconds) return ok(`last status ${node?.status}, ${age.toFixed(1)} s ago`);
  const what = age === null ? 'no status received' : `its last status is ${Math.round(age)} s old; at most ${maxAgeSeconds} s are allowed`;
  const hint = onGraph === null ? '' : onGraph ? '; it is on the graph but sends nothing' : '; it is not on the graph';
  const remedy = onGraph
    ? `see its log, and ros2 topic info -v /health_status`
    : 'check that it runs, is in the same network and ROS_DOMAIN_ID, and has this node_name (ops.check.nodes)';
  return critical(`${what}${hint}`, remedy);
}

/** Shows a node when none is configured. No status counts as a problem. */
export function describeNode({ age_seconds: age, node_name, status }: Node, isNote: boolean): CheckResult {
  const { note, ok } = resultsFor(`node ${node_name}`, { age_seconds: age, status, on_graph: null });
  const message = age === null ? 'no status received' : `last status ${status}, ${age.toFixed(1)} s ago`;
  return isNote ? note(message) : ok(message);
}

const ROS2_TIMEOUT_SECONDS = 12;

/** Nodes as the ROS 2 tools list them, or null if ROS 2 is not sourced or the tool fails. */
async function readGraph({ environment, signal }: CheckContext): Promise<string[] | null> {
  if ((await findProgram('ros2', environment)) === null) return null;
  const options = { environment, timeoutSeconds: ROS2_TIMEOUT_SECONDS, signal };
  const listed = await runProgram(['ros2', 'node', 'list'], options).catch(() => null);
  return listed?.exitCode === 0 ? listed.stdout.split('\n').filter((line) => line.startsWith('/')) : null;
}

export const checkNodes: Check = async (context) => {
  const { node_max_age_seconds: maxAgeSeconds, nodes: names } = context.config.ops.check;
  const isManual = context.trigger === 'manual';
  const answer = await context.service;
  if (answer.kind !== 'answer')
    return names.map((name) => resultsFor(`node ${name}`).unknown('unknown: no response from the service', 'check the service first'));
  if (names.length === 0) return answer.status.nodes.map((node) => describeNode(node, isManual));
  const { nodes, ros } = answer.status;
  const known = new Map(nodes.map((node) => [node.node_name, node]));
  const observers = ros.observing ? [] : ros.observers;
  const evaluate = (graph: readonly string[] | null): CheckResult[] =>
    names.map((name) => {
      const node = known.get(name);
      return observers.length > 0 && !node?.local ? noteUnobserved(name, observers) : evaluateNode(name, node, maxAgeSeconds, graph);
    });
  const results = evaluate(null);
  // ros2 takes a second of CPU: acceptable in a manual run, but not every five minutes.
  if (!isManual || results.every(({ status }) => status === 'OK')) return results;
  return evaluate(await readGraph(context));
};
