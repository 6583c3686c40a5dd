import type { VNode } from 'preact';
import { Bell } from '../../icons.tsx';
import { words } from '../../words/words.ts';
import { AlertList, ResolvedList } from '../node/alert-list.tsx';
import type { View, ViewProps } from '../view.ts';

/** Open and past alerts of all nodes. */
function Alerts({ link, nowMs, state }: ViewProps): VNode {
  return (
    <main class="page">
      <AlertList state={state} isOutdated={link.state === 'gone'} nowMs={nowMs} />
      <ResolvedList entries={state.book.resolved} node={state.local} nowMs={nowMs} />
    </main>
  );
}

const view: View = {
  name: 'alerts',
  order: 3,
  Icon: Bell,
  label: () => words.episodes.title,
  badge: ({ state }) => state.book.open.length,
  Component: Alerts,
};
export default view;
