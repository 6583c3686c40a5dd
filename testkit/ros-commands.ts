/** The commands of ROS 2 that the documentation shows, and the QoS that the subscriptions among them request. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './service/service.ts';

/** The pages of the documentation, each with its text. */
const PAGES: readonly (readonly [page: string, text: string])[] = [
  'README.md',
  ...globSync(['docs/**/*.md', 'ros2/*/README.md'], { cwd: ROOT }),
]
  .sort()
  .map((page) => [page, readFileSync(join(ROOT, page), 'utf8')]);

const BLOCK = /^```(\w*)\n([\s\S]*?)^```/gm;
/** A mention without arguments, such as `ros2 topic echo`, names a tool. */
const MENTION = /^ros2 \w+ (?!list$)\w+$/;

/** A shell command of a page. */
export interface RosCommand {
  readonly page: string;
  readonly line: string;
}

/** The lines of code blocks and the inline code that run `ros2`, each once, in the order of the pages. */
export function rosCommands(): RosCommand[] {
  const commands = new Map<string, RosCommand>();
  for (const [page, text] of PAGES) {
    const blocks = [...text.matchAll(BLOCK)].filter(([, language = '']) => ['', 'sh', 'bash', 'console'].includes(language));
    const lines = blocks.flatMap(([, , block = '']) => block.replaceAll(/ *\\\n */g, ' ').split('\n'));
    const inline = [...text.replaceAll(BLOCK, '').matchAll(/`(ros2 [^`]+)`/g)].map(([, code = '']) => code);
    for (const shown of [...lines.filter((line) => /\bros2 [a-z]/.test(line)), ...inline]) {
      const line = shown.replace(/^\s*(?:\$ )?/, '').replace(/\s+#.*$/, '');
      if (!commands.has(line)) commands.set(line, { page, line: MENTION.test(line) ? `${line} --help` : line });
    }
  }
  return [...commands.values()];
}

/** The programs in Python that use rclpy. */
export function rclpyPrograms(): RosCommand[] {
  return PAGES.flatMap(([page, text]) =>
    [...text.matchAll(BLOCK)]
      .filter(([, language, block = '']) => language === 'python' && block.includes('import rclpy'))
      .map(([, , block = '']) => ({ page, line: block })),
  );
}

/** A subscription that the documentation shows. */
export interface DocumentedSubscription {
  readonly command: string;
  readonly topic: string;
  /** null: like the publishers. */
  readonly reliability: 'reliable' | 'best-effort' | null;
  readonly durability: 'transient-local' | 'volatile' | null;
  readonly depth: number;
  /** It asks for messages published before it: it names a depth, or transient local durability. */
  readonly wantsPast: boolean;
}

/**
 * The QoS that `ros2 topic echo` requests: without an option, reliability and durability of the publishers; with any, that of sensor
 * data (best effort, volatile, depth 5) except for these options (choose_qos in ros2topic/verb/echo.py).
 */
function echoed({ line }: RosCommand): DocumentedSubscription[] {
  const [, topic] = /^ros2 topic echo (?:--once )?(\/\S+)/.exec(line) ?? [];
  // diagnostic_aggregator publishes that topic.
  if (topic === undefined || topic === '/diagnostics_agg') return [];
  const option = (name: string): string | null => new RegExp(`--qos-${name} (\\w+)`).exec(line)?.[1]?.replace('_', '-') ?? null;
  const [reliability, durability, depth] = [option('reliability'), option('durability'), option('depth')];
  const isDefault = !line.includes('--qos-');
  return [
    {
      command: line,
      topic,
      reliability: isDefault ? null : ((reliability ?? 'best-effort') as 'reliable' | 'best-effort'),
      durability: isDefault ? null : ((durability ?? 'volatile') as 'transient-local' | 'volatile'),
      depth: Number(depth ?? 5),
      wantsPast: depth !== null || durability === 'transient-local',
    },
  ];
}

/** The QoS that a program in Python requests; that of a QoSProfile is reliable and volatile unless it has other policies. */
function subscribed({ page, line }: RosCommand): DocumentedSubscription[] {
  return [...line.matchAll(/create_subscription\(\w+, "([^"]+)"/g)].map(([, topic = '']) => ({
    command: `rclpy in ${page}`,
    topic,
    reliability: line.includes('BEST_EFFORT') ? 'best-effort' : 'reliable',
    durability: line.includes('TRANSIENT_LOCAL') ? 'transient-local' : 'volatile',
    depth: Number(/depth=(\d+)/.exec(line)?.[1]),
    wantsPast: line.includes('TRANSIENT_LOCAL'),
  }));
}

export function documentedSubscriptions(): DocumentedSubscription[] {
  return [...rosCommands().flatMap(echoed), ...rclpyPrograms().flatMap(subscribed)];
}
