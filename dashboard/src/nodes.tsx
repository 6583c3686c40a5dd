import type { VNode } from 'preact';
import { duration } from './format.ts';
import { STATUS_ICONS } from './icons.tsx';
import type { NodeState } from './types.ts';

interface NodesProps {
  readonly nodes: readonly NodeState[];
  /** Seconds since this was told. */
  readonly laterSeconds: number;
  readonly isLast: boolean;
}

/** The other monitoring nodes that this machine hears of. */
export function Nodes({ nodes, laterSeconds, isLast }: NodesProps): VNode | null {
  const others = nodes.filter((node) => !node.local);
  if (others.length === 0) return null;
  return (
    <section class="card nodes" aria-labelledby="nodes-title">
      <h2 id="nodes-title">Other nodes</h2>
      <ul>
        {others.map(({ age_seconds, node_name, status }) => {
          const shown = isLast ? 'UNKNOWN' : status;
          const Icon = STATUS_ICONS[shown];
          return (
            <li key={node_name}>
              <span class={`state ${shown.toLowerCase()}`}>
                <Icon />
                {shown}
              </span>
              <span class="name">{node_name}</span>
              <span class="age">{age_seconds === null ? 'never heard' : `${duration(age_seconds + laterSeconds)} ago`}</span>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
