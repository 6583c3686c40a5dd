import './style.css';
import type { VNode } from 'preact';
import { Gear } from '../../icons.tsx';
import { words } from '../../words/words.ts';
import type { View, ViewProps } from '../view.ts';
import { Facts } from './facts.tsx';
import { JobList } from './job-list.tsx';

/** The monitor itself: rates, storage, ROS 2, jobs. */
function System({ link, nowMs, state, statusAgeSeconds }: ViewProps): VNode {
  const isGone = link.state === 'gone';
  const { status } = state;
  return (
    <main class="page">
      <section class="card">
        <h2>{words.system.title}</h2>
        {status ? <Facts status={status} statusAgeSeconds={isGone ? 0 : statusAgeSeconds} /> : <p>{words.shell.loading}</p>}
      </section>
      <JobList ops={status?.ops ?? null} isOutdated={isGone} nowMs={nowMs} />
    </main>
  );
}

const view: View = { name: 'system', order: 4, Icon: Gear, label: () => words.system.title, Component: System };
export default view;
