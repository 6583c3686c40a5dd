import './style.css';
import type { VNode } from 'preact';
import { messages } from '../../messages/messages.ts';
import { Gear } from '../../page/icons.tsx';
import type { View, ViewProps } from '../view.ts';
import { RosCard, ServiceCard, ShutdownCard, StorageCard } from './facts.tsx';
import { JobList } from './job-list.tsx';
import { ReportsCard } from './reports.tsx';

/** The monitor itself: rates, storage, ROS 2, jobs, the last shutdown, reliability reports. */
function System({ api, link, nowMs, state, statusAgeSeconds }: ViewProps): VNode {
  const isOutdated = link.state === 'gone';
  const { status } = state;
  if (!status)
    return (
      <main class="page">
        <p class="card muted">{messages.shell.loading}</p>
      </main>
    );
  const props = { status, isOutdated, statusAgeSeconds, nowMs };
  return (
    <main class="page system">
      <ServiceCard {...props} />
      <StorageCard {...props} />
      <RosCard {...props} />
      <JobList ops={status.ops} isOutdated={isOutdated} nowMs={nowMs} />
      <ReportsCard api={api} connection={state.connection} isInstalled={status.installed} isOutdated={isOutdated} nowMs={nowMs} />
      <ShutdownCard shutdown={status.shutdown} isOutdated={isOutdated} nowMs={nowMs} />
    </main>
  );
}

const view: View = { name: 'system', order: 4, Icon: Gear, label: () => messages.system.title, Component: System };
export default view;
