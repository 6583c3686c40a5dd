import type { ComponentChildren, VNode } from 'preact';
import { messages } from '../../messages/messages.ts';
import { Ring, STATUS_ICONS } from '../../page/icons.tsx';
import type { Headline } from '../../text.ts';

/** The status of the shown node, large enough to be read across a room, and what it means. */
export function Hero({ head, children }: { head: Headline; children: ComponentChildren }): VNode {
  const { action, sentence, status } = head;
  const StatusIcon = status === null ? Ring : STATUS_ICONS[status];
  return (
    <section class={`hero ${(status ?? 'none').toLowerCase()}`} aria-labelledby="status-title" aria-live="polite" aria-atomic="true">
      <h2 id="status-title" class="hidden">
        {messages.headline.title}
      </h2>
      <StatusIcon />
      <p class="word">{status === null ? '…' : messages.status[status].word}</p>
      <p class="sentence">{sentence}</p>
      {status !== null && status !== 'OK' && <p class="action">{action ?? messages.status[status].action}</p>}
      {children}
    </section>
  );
}

export function Notices({ lines }: { lines: readonly string[] }): VNode {
  return (
    <div role="status">
      {lines.map((line) => (
        <p key={line} class="notice">
          <STATUS_ICONS.WARNING />
          {line}
        </p>
      ))}
    </div>
  );
}
