import type { VNode } from 'preact';
import type { OtherNodes } from './alert-book.ts';
import { SEVERITY_ICONS } from './icons.tsx';
import { otherNodesText } from './text.ts';

interface OtherNodesHintProps {
  readonly otherNodes: OtherNodes;
  /** Null: the node of the worst alert cannot be shown, as it is not among those that the service lists. */
  readonly onNode: ((node: string) => void) | null;
}

/** Open alerts of other nodes, with a link to the worst of these nodes. */
export function OtherNodesHint({ otherNodes, onNode }: OtherNodesHintProps): VNode {
  const { node, severity } = otherNodes;
  const Icon = SEVERITY_ICONS[severity];
  const name = `other-nodes ${severity.toLowerCase()}`;
  const words = [<Icon key="icon" />, <span key="words">{otherNodesText(otherNodes)}</span>];
  if (onNode === null) return <p class={name}>{words}</p>;
  return (
    <button type="button" class={name} title={`Show ${node}`} onClick={() => onNode(node)}>
      {words}
    </button>
  );
}
