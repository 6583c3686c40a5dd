import { TableSortByFieldStateBuilder } from '@grafana/grafana-foundation-sdk/common';
import { type DashboardBuilder, DashboardLinkBuilder, DashboardLinkType, RowBuilder } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as StateTimeline } from '@grafana/grafana-foundation-sdk/statetimeline';
import {
  chart,
  choice,
  coloured,
  curve,
  DATASOURCE,
  dashboard,
  joined,
  now,
  rising,
  rows,
  STATES,
  STATUS_COLOURS,
  stat,
  steps,
  table,
} from './parts.ts';

/** What the variables site and room leave. */
const WHERE = 'site=~"$site", room=~"$room"';
const COUNTED = `and on (instance, node) instance_node:edge_health_counted:bool{${WHERE}}`;
const ROW = 'site, room, robot, instance, node';

/** The values of a family as rows, one for each node that counts. */
const each = (family: string): string => `max by (${ROW}) (${family}{${WHERE}} ${COUNTED})`;

/** All robots at a glance: the worst first, and what goes wrong next. */
export function fleetDashboard(): DashboardBuilder {
  return dashboard('edge-health: fleet', 'edge-health-fleet', 'All robots, the worst first. A click on one opens its own dashboard.')
    .withVariable(choice('site', 'Site', 'up{job="edge-health"}', true))
    .withVariable(choice('room', 'Room', 'up{job="edge-health", site=~"$site"}', true))
    .link(new DashboardLinkBuilder('One robot').type(DashboardLinkType.Link).url('/d/edge-health-robot').keepTime(true))
    .withPanel(
      stat({ title: 'Appliances that answer', help: 'Of all that Prometheus watches.', width: 4 })
        .unit('percentunit')
        .thresholds(rising([0.5, 'notice'], [1, 'good']))
        .withTarget(now(`avg(up{job="edge-health", ${WHERE}})`)),
    )
    .withPanel(
      stat({ title: 'Appliances', help: 'How many Prometheus watches.', width: 4 }).withTarget(
        now(`count(up{job="edge-health", ${WHERE}})`),
      ),
    )
    .withPanel(
      stat({ title: 'ERROR or worse', help: 'Nodes with status ERROR, CRITICAL or UNKNOWN, and appliances that do not respond.', width: 4 })
        .thresholds(steps([1, 'bad']))
        .withTarget(now(`count(instance_node:edge_health_state:level{${WHERE}} >= 2) or vector(0)`)),
    )
    .withPanel(
      stat({ title: 'WARNING', help: 'Nodes with status WARNING.', width: 4 })
        .thresholds(steps([1, 'notice']))
        .withTarget(now(`count(instance_node:edge_health_state:level{${WHERE}} == 1) or vector(0)`)),
    )
    .withPanel(
      stat({ title: 'Alerts that fire', help: 'Without those that are only worth knowing.', width: 4 })
        .thresholds(steps([1, 'notice'], [5, 'bad']))
        .withTarget(now(`count(ALERTS{alertname=~"EdgeHealth.+", alertstate="firing", severity!="info", ${WHERE}}) or vector(0)`)),
    )
    .withPanel(
      stat({ title: 'Versions', help: 'Different versions of edge-health.', width: 4 })
        .thresholds(steps([2, 'notice']))
        .withTarget(now('count(count by (version) (site_version:edge_health_instances:count{site=~"$site"}))')),
    )
    .withPanel(robots())
    .withPanel(firing())
    .withPanel(
      joined(table({ title: 'Rooms', help: 'Which part of the appliances of a room answers.', width: 8 }), {
        site: 'Site',
        room: 'Room',
        Value: 'Answer',
      })
        .withTarget(rows('A', `room:edge_health_up:ratio{${WHERE}}`))
        .overrideByName('Answer', coloured('percentunit', rising([0.5, 'notice'], [1, 'good']))),
    )
    .withRow(new RowBuilder('In time'))
    .withPanel(
      new StateTimeline()
        .title('States')
        .description('A line for each robot, and for each node it hears.')
        .datasource(DATASOURCE)
        .span(24)
        .height(10)
        .mappings(STATES)
        .withTarget(curve(`max by (instance, node) (instance_node:edge_health_state:level{${WHERE}})`, '{{instance}} {{node}}')),
    )
    .withPanel(
      Object.entries(STATUS_COLOURS).reduce(
        (panel, [status, colour]) => panel.overrideByName(status, [{ id: 'color', value: { mode: 'fixed', fixedColor: colour } }]),
        chart({ title: 'Robots by status', help: 'Number of nodes with each status.', width: 12 }).withTarget(
          curve(`count by (status) (edge_health_status{${WHERE}} == 1 ${COUNTED})`, '{{status}}'),
        ),
      ),
    )
    .withPanel(
      chart({ title: 'Slowest publishers', help: 'Statuses published, of those that should be. 99 % are wanted.', width: 12 })
        .unit('percentunit')
        .withTarget(curve(`bottomk(10, instance:edge_health_publish_rate:ratio{${WHERE}})`, '{{instance}}')),
    )
    .withPanel(
      chart({ title: 'Disks in a day', help: 'Usage in 24 hours, if it goes on as in the last six. Above 100 %: full before.', width: 12 })
        .unit('percentunit')
        .withTarget(curve(`topk(10, instance_node:edge_health_disk_usage_ratio:predict1d{${WHERE}} ${COUNTED})`, '{{instance}} {{node}}')),
    )
    .withPanel(
      chart({ title: 'Hottest', help: 'Ten at most.', width: 12 })
        .unit('celsius')
        .withTarget(curve(`topk(10, edge_health_temperature_celsius{${WHERE}} ${COUNTED})`, '{{instance}} {{node}}')),
    )
    .withRow(new RowBuilder('Operations'))
    .withPanel(
      joined(table({ title: 'Jobs that fail', help: 'Whose last run ended with CRITICAL or UNKNOWN.', width: 12 }), {
        instance: 'Appliance',
        ops_job: 'Job',
        status: 'Ended with',
      }).withTarget(rows('A', `edge_health_ops_job_last_status{status=~"CRITICAL|UNKNOWN", ${WHERE}} == 1`)),
    )
    .withPanel(
      joined(table({ title: 'Oldest backups', help: 'Since the last that succeeded.', width: 6 }), { instance: 'Appliance', Value: 'Age' })
        .withTarget(rows('A', `topk(20, instance_ops_job:edge_health_ops_job_last_success:age_seconds{ops_job="backup_logs", ${WHERE}})`))
        .overrideByName('Age', coloured('s', steps([93_600, 'notice'], [259_200, 'bad']))),
    )
    .withPanel(
      joined(table({ title: 'Versions', help: 'Appliances of each version.', width: 6 }), {
        site: 'Site',
        version: 'Version',
        Value: 'Appliances',
      }).withTarget(rows('A', 'site_version:edge_health_instances:count{site=~"$site"}')),
    );
}

function robots() {
  const panel = table({
    title: 'Robots, worst first',
    help: 'Each appliance, and the nodes that it hears and nobody else has.',
    width: 24,
    height: 14,
  })
    .withTarget(rows('A', `max by (${ROW}) (instance_node:edge_health_state:level{${WHERE}})`))
    .withTarget(rows('B', each('edge_health_cpu_usage_ratio')))
    .withTarget(rows('C', each('edge_health_memory_usage_ratio')))
    .withTarget(rows('D', each('edge_health_disk_usage_ratio')))
    .withTarget(rows('E', each('edge_health_temperature_celsius')))
    .withTarget(rows('F', `sum by (${ROW}) (edge_health_node_open_alerts{${WHERE}} ${COUNTED})`));
  return joined(panel, {
    'Value #A': 'State',
    robot: 'Robot',
    instance: 'Appliance',
    node: 'Node',
    site: 'Site',
    room: 'Room',
    'Value #B': 'CPU',
    'Value #C': 'Memory',
    'Value #D': 'Disk',
    'Value #E': 'Temperature',
    'Value #F': 'Open alerts',
  })
    .sortBy([new TableSortByFieldStateBuilder().displayName('State').desc(true)])
    .overrideByName('State', [
      { id: 'mappings', value: STATES },
      { id: 'custom.cellOptions', value: { type: 'color-background' } },
      { id: 'custom.width', value: 110 },
    ])
    .overrideByName('Appliance', [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana puts the value in.
      { id: 'links', value: [{ title: 'This robot', url: '/d/edge-health-robot?var-instance=${__value.raw}&$__url_time_range' }] },
    ])
    .overrideByName('CPU', coloured('percentunit', steps([0.8, 'notice'], [0.9, 'bad'])))
    .overrideByName('Memory', coloured('percentunit', steps([0.85, 'notice'], [0.95, 'bad'])))
    .overrideByName('Disk', coloured('percentunit', steps([0.8, 'notice'], [0.9, 'bad'])))
    .overrideByName('Temperature', coloured('celsius', steps([70, 'notice'], [85, 'bad'])))
    .overrideByName('Open alerts', coloured('short', steps([1, 'notice'])));
}

function firing() {
  return joined(table({ title: 'Alerts', help: 'What fires now, or is about to (pending).', width: 16 }), {
    severity: 'Severity',
    alertname: 'Alert',
    alertstate: 'State',
    instance: 'Appliance',
    node: 'Node',
    room: 'Room',
    ops_job: 'Job',
  }).withTarget(rows('A', `ALERTS{alertname=~"EdgeHealth.+", ${WHERE}}`));
}
