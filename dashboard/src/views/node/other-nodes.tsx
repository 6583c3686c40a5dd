import type { VNode } from 'preact';
import { markLookAlike } from '../../../../src/core/look-alike.ts';
import { messages } from '../../messages/messages.ts';
import type { OtherNodes } from '../../model/alert-book.ts';
import { SEVERITY_ICONS } from '../../page/icons.tsx';
import { hrefOf } from '../../page/route.ts';
import { otherNodesText } from '../../text.ts';

interface OtherNodesHintProps {
  readonly otherNodes: OtherNodes;
  /** False: /status does not list the node of the worst alert, so the page cannot show it. */
  readonly isListed: boolean;
}

/** The number of open alerts of other nodes, with a link to the node of the worst alert. */
export function OtherNodesHint({ otherNodes, isListed }: OtherNodesHintProps): VNode {
  const { node, severity } = otherNodes;
  const Icon = SEVERITY_ICONS[severity];
  const name = `other-nodes ${severity.toLowerCase()}`;
  const content = [<Icon key="icon" />, <span key="text">{otherNodesText(otherNodes)}</span>];
  if (!isListed) return <p class={name}>{content}</p>;
  return (
    <a class={name} title={messages.alerts.showNode(markLookAlike(node))} href={hrefOf({ view: 'nodes', item: node })}>
      {content}
    </a>
  );
}
