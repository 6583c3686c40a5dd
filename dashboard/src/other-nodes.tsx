import type { VNode } from 'preact';
import type { OtherNodes } from './alert-book.ts';
import { SEVERITY_ICONS } from './icons.tsx';
import { otherNodesText } from './text.ts';

interface OtherNodesHintProps {
  readonly otherNodes: OtherNodes;
  /** Null: /status does not list the node of the worst alert, so the page cannot show it. */
  readonly onNode: ((node: string) => void) | null;
}

/** The number of open alerts of other nodes, with a link to the node of the worst alert. */
export function OtherNodesHint({ otherNodes, onNode }: OtherNodesHintProps): VNode {
  const { node, severity } = otherNodes;
  const Icon = SEVERITY_ICONS[severity];
  const name = `other-nodes ${severity.toLowerCase()}`;
  const content = [<Icon key="icon" />, <span key="text">{otherNodesText(otherNodes)}</span>];
  if (onNode === null) return <p class={name}>{content}</p>;
  return (
    <button type="button" class={name} title={`Show ${node}`} onClick={() => onNode(node)}>
      {content}
    </button>
  );
}
