import type { StatusDocument } from '../../src/http/api/schema.ts';
import type { Check } from './check.ts';
import { find, runTool } from './tool.ts';
import { finding, fine, type Verdict } from './verdict.ts';

const ROS2_SECONDS = 12;

type Node = StatusDocument['nodes'][number];

/** Whether a node of this name is among the names of `ros2 node list`, which have their namespace before them. */
export function isOnGraph(name: string, graph: readonly string[]): boolean {
  return graph.some((entry) => entry === `/${name}` || entry.endsWith(`/${name}`));
}

/** `graph`: names on the ROS 2 graph; null: not asked. */
export function judgeNode(name: string, node: Node | undefined, maxAgeSeconds: number, graph: readonly string[] | null): Verdict {
  const topic = `node ${name}`;
  const onGraph = graph === null ? null : isOnGraph(name, graph);
  const age = node?.age_seconds ?? null;
  const measured = { age_seconds: age, status: node?.status ?? null, on_graph: onGraph };
  if (age !== null && age <= maxAgeSeconds) return fine(topic, `${node?.status}, ${age.toFixed(1)} s ago`, measured);
  const what = age === null ? 'it was not heard' : `its last status is ${Math.round(age)} s old; at most ${maxAgeSeconds} s are allowed`;
  const hint = onGraph === null ? '' : onGraph ? '; it is on the graph but sends nothing' : '; it is not on the graph';
  const remedy = onGraph
    ? `see its log, and ros2 topic info -v /health_status`
    : 'see whether it runs, is in the same network and ROS_DOMAIN_ID, and has this node_name (ops.check.nodes)';
  return finding(topic, 'CRITICAL', `${what}${hint}`, remedy, measured);
}

/** Names of nodes as the ROS 2 tools see them; null: they are not sourced, or do not answer. */
async function askGraph(environment: NodeJS.ProcessEnv, signal: AbortSignal): Promise<string[] | null> {
  try {
    if ((await find('ros2', environment)) === null) return null;
    const { code, stdout } = await runTool(['ros2', 'node', 'list'], { environment, seconds: ROS2_SECONDS, signal });
    return code === 0 ? stdout.split('\n').filter((line) => line.startsWith('/')) : null;
  } catch {
    return null;
  }
}

export const nodeCheck: Check = {
  name: 'nodes',
  seconds: 20,
  run: async ({ context, service }, signal) => {
    const { node_max_age_seconds: maxAgeSeconds, nodes: names } = context.config.ops.check;
    if (names.length === 0) return [];
    const answer = await service;
    if (answer.kind !== 'answer')
      return names.map((name) =>
        finding(`node ${name}`, 'UNKNOWN', 'the service, which hears it, does not answer', 'see the service first'),
      );
    const known = new Map(answer.status.nodes.map((node) => [node.node_name, node]));
    const judge = (graph: readonly string[] | null): Verdict[] =>
      names.map((name) => judgeNode(name, known.get(name), maxAgeSeconds, graph));
    const verdicts = judge(null);
    // It costs a second of CPU: for somebody who is looking, not every five minutes.
    if (context.trigger !== 'manual' || verdicts.every(({ status }) => status === 'OK')) return verdicts;
    return judge(await askGraph(context.environment, signal));
  },
};
