import type { VNode } from 'preact';
import type { Elsewhere } from './alert-book.ts';
import { SEVERITY_ICONS } from './icons.tsx';
import { elsewhereWords } from './words.ts';

interface ElsewhereHintProps {
  readonly elsewhere: Elsewhere;
  /** Null: the node of the worst alert cannot be shown, as it is not among those that the service lists. */
  readonly onNode: ((node: string) => void) | null;
}

/** That all is well here does not say that it is elsewhere; it leads to where it is worst. */
export function ElsewhereHint({ elsewhere, onNode }: ElsewhereHintProps): VNode {
  const { node, severity } = elsewhere;
  const Icon = SEVERITY_ICONS[severity];
  const name = `elsewhere ${severity.toLowerCase()}`;
  const words = [<Icon key="icon" />, <span key="words">{elsewhereWords(elsewhere)}</span>];
  if (onNode === null) return <p class={name}>{words}</p>;
  return (
    <button type="button" class={name} title={`Show ${node}`} onClick={() => onNode(node)}>
      {words}
    </button>
  );
}
