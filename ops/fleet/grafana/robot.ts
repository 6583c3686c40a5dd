import { BigValueTextMode } from '@grafana/grafana-foundation-sdk/common';
import {
  AnnotationQueryBuilder,
  type DashboardBuilder,
  DashboardLinkBuilder,
  DashboardLinkType,
  RowBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as StateTimeline } from '@grafana/grafana-foundation-sdk/statetimeline';
import {
  chart,
  choice,
  coloured,
  curve,
  DATASOURCE,
  dashboard,
  joined,
  LIMIT,
  now,
  rising,
  rows,
  STATES,
  stat,
  steps,
  table,
} from './parts.ts';

const ONE = 'instance="$instance"';

/** The usage of something from 0 to 1 by node, with the appliance's own thresholds. */
function usage(title: string, family: string) {
  return chart({ title, help: 'Of the appliance and of each node that it hears; dashed: its own thresholds.', width: 12 })
    .unit('percentunit')
    .max(1)
    .withTarget(curve(`${family}_ratio{${ONE}}`, '{{node}}'))
    .withTarget(curve(`${family}_threshold_ratio{${ONE}}`, '{{severity}}'))
    .overrideByRegexp('^(WARNING|CRITICAL)$', LIMIT);
}

/** Everything of one appliance: its values, its alerts, its service and its jobs. */
export function robotDashboard(): DashboardBuilder {
  const built = dashboard('edge-health: one robot', 'edge-health-robot', 'One appliance, with the nodes that it hears on the ROS 2 graph.')
    .withVariable(choice('instance', 'Appliance', 'up{job="edge-health"}', false))
    .link(new DashboardLinkBuilder('Fleet').type(DashboardLinkType.Link).url('/d/edge-health-fleet').keepTime(true))
    .annotation(
      new AnnotationQueryBuilder()
        .name('Restarts of the service')
        .datasource(DATASOURCE)
        .enable(true)
        .iconColor('blue')
        .expr(`changes(edge_health_start_time_seconds{${ONE}}[2m]) > 0`)
        .titleFormat('The service was restarted'),
    );
  return operations(service(machine(glance(built))));
}

function glance(to: DashboardBuilder): DashboardBuilder {
  return to
    .withPanel(
      stat({ title: 'State', help: 'The worst of the appliance and the nodes that count.', width: 4 })
        .mappings(STATES)
        .thresholds(steps([1, 'notice'], [2, 'unknown'], [3, 'bad'], [4, 'gone']))
        .withTarget(now(`max(instance_node:edge_health_state:level{${ONE}})`)),
    )
    .withPanel(
      stat({ title: 'Open alerts', help: 'Of the appliance and the nodes that it hears.', width: 4 })
        .thresholds(steps([1, 'notice']))
        .withTarget(now(`sum(edge_health_open_alerts{${ONE}})`)),
    )
    .withPanel(
      stat({ title: 'Publish rate', help: 'Statuses published, of those that should be.', width: 4 })
        .unit('percentunit')
        .thresholds(rising([0.95, 'notice'], [0.99, 'good']))
        .withTarget(now(`instance:edge_health_publish_rate:ratio{${ONE}}`)),
    )
    .withPanel(
      stat({ title: 'Running since', help: 'When the service started.', width: 4 })
        .unit('dateTimeFromNow')
        .withTarget(now(`edge_health_start_time_seconds{${ONE}} * 1000`)),
    )
    .withPanel(
      stat({ title: 'Left until too hot', help: "How far the temperature is below the appliance's own CRITICAL threshold.", width: 4 })
        .unit('celsius')
        .thresholds(rising([5, 'notice'], [15, 'good']))
        .withTarget(now(`instance_node:edge_health_temperature_celsius:margin{${ONE}}`)),
    )
    .withPanel(
      stat({ title: 'Version', help: 'Of edge-health.', width: 4 })
        .textMode(BigValueTextMode.Name)
        .withTarget(now(`edge_health_build_info{${ONE}}`, '{{version}}')),
    )
    .withPanel(
      joined(table({ title: 'Alerts', help: 'What fires now, or is about to (pending).', width: 12, height: 7 }), {
        severity: 'Severity',
        alertname: 'Alert',
        alertstate: 'State',
        node: 'Node',
        ops_job: 'Job',
      }).withTarget(rows('A', `ALERTS{alertname=~"EdgeHealth.+", ${ONE}}`)),
    )
    .withPanel(
      joined(table({ title: 'Machine', help: 'Hardware and system.', width: 12, height: 7 }), {
        hostname: 'Host',
        model: 'Model',
        os: 'System',
        kernel: 'Kernel',
        architecture: 'Architecture',
      }).withTarget(rows('A', `edge_health_host_info{${ONE}}`)),
    );
}

function machine(to: DashboardBuilder): DashboardBuilder {
  return to
    .withRow(new RowBuilder('Machine'))
    .withPanel(usage('CPU', 'edge_health_cpu_usage'))
    .withPanel(usage('Memory', 'edge_health_memory_usage'))
    .withPanel(
      usage('Disk', 'edge_health_disk_usage').withTarget(
        curve(`instance_node:edge_health_disk_usage_ratio:predict1d{${ONE}}`, '{{node}} in a day'),
      ),
    )
    .withPanel(
      chart({ title: 'Temperature', help: 'Of the processor or the whole chip; dashed: the thresholds.', width: 12 })
        .unit('celsius')
        .withTarget(curve(`edge_health_temperature_celsius{${ONE}}`, '{{node}}'))
        .withTarget(curve(`edge_health_temperature_threshold_celsius{${ONE}}`, '{{severity}}'))
        .overrideByRegexp('^(WARNING|CRITICAL)$', LIMIT),
    )
    .withPanel(
      new StateTimeline()
        .title('States')
        .description('Of the appliance and of each node that it hears.')
        .datasource(DATASOURCE)
        .span(12)
        .height(8)
        .mappings(STATES)
        .withTarget(curve(`instance_node:edge_health_state:level{${ONE}}`, '{{node}}')),
    )
    .withPanel(
      chart({
        title: 'Power and heat',
        help: 'A supply that is too weak (1), and how often the processor was slowed for its heat.',
        width: 12,
      })
        .withTarget(curve(`edge_health_undervoltage{${ONE}}`, 'undervoltage'))
        .withTarget(curve(`increase(edge_health_cpu_throttle_events_total{${ONE}}[$__rate_interval])`, 'slowed for its heat')),
    )
    .withPanel(
      joined(
        table({ title: 'Nodes', help: 'The appliance itself, and what it hears on the ROS 2 graph.', width: 12 })
          .withTarget(rows('A', `max by (node) (edge_health_node_local{${ONE}})`))
          .withTarget(rows('B', `max by (node) (edge_health_node_silent{${ONE}})`))
          .withTarget(rows('C', `max by (node) (time() - edge_health_last_sample_timestamp_seconds{${ONE}})`))
          .withTarget(rows('D', `sum by (node) (edge_health_node_open_alerts{${ONE}})`)),
        { node: 'Node', 'Value #A': 'Own', 'Value #B': 'Silent', 'Value #C': 'Last sample', 'Value #D': 'Open alerts' },
      )
        .overrideByRegexp('^(Own|Silent)$', [{ id: 'unit', value: 'bool_yes_no' }])
        .overrideByName('Last sample', coloured('s', steps([30, 'notice'], [300, 'bad'])))
        .overrideByName('Open alerts', coloured('short', steps([1, 'notice']))),
    )
    .withPanel(
      joined(
        table({ title: 'Readings', help: 'Whether each metric can be read, and how long that takes.', width: 12 })
          .withTarget(rows('A', `max by (metric) (edge_health_collector_success{${ONE}})`))
          .withTarget(rows('B', `max by (metric) (edge_health_collector_duration_seconds{${ONE}})`)),
        { metric: 'Metric', 'Value #A': 'Readable', 'Value #B': 'Takes' },
      )
        .overrideByName('Readable', [{ id: 'unit', value: 'bool_yes_no' }])
        .overrideByName('Takes', coloured('s', steps([0.1, 'notice'], [0.5, 'bad']))),
    );
}

function service(to: DashboardBuilder): DashboardBuilder {
  return to
    .withRow(new RowBuilder('Service'))
    .withPanel(
      chart({ title: 'Publishing', help: 'Statuses a second as configured and as measured.', width: 12 })
        .unit('hertz')
        .withTarget(curve(`edge_health_publish_rate_hertz{${ONE}}`, 'measured'))
        .withTarget(curve(`edge_health_publish_frequency_hertz{${ONE}}`, 'configured')),
    )
    .withPanel(
      chart({
        title: 'Missed, lost, refused',
        help: 'Samples missed; given up for lack of a disk; statuses of other nodes refused.',
        width: 12,
      })
        .withTarget(curve(`increase(edge_health_missed_samples_total{${ONE}}[$__rate_interval])`, 'missed'))
        .withTarget(curve(`increase(edge_health_storage_lost_samples_total{${ONE}}[$__rate_interval])`, 'lost'))
        .withTarget(curve(`increase(edge_health_gathered_refused_total{${ONE}}[$__rate_interval])`, 'refused')),
    )
    .withPanel(
      chart({ title: 'Memory of the service', help: 'Resident; systemd restarts it at 256 MB.', width: 8 })
        .unit('bytes')
        .withTarget(curve(`edge_health_process_resident_memory_bytes{${ONE}}`, 'resident')),
    )
    .withPanel(
      chart({ title: 'CPU of the service', help: 'Of one core.', width: 8 })
        .unit('percentunit')
        .withTarget(curve(`instance:edge_health_process_cpu_seconds:rate5m{${ONE}}`, 'used')),
    )
    .withPanel(
      chart({ title: 'Database', help: 'Size, its cap, and samples that wait for the disk.', width: 8 })
        .unit('bytes')
        .withTarget(curve(`edge_health_storage_size_bytes{${ONE}}`, 'size'))
        .withTarget(curve(`edge_health_storage_max_bytes{${ONE}}`, 'cap'))
        .withTarget(curve(`edge_health_storage_pending_samples{${ONE}}`, 'waiting samples'))
        .overrideByName('waiting samples', [
          { id: 'unit', value: 'short' },
          { id: 'custom.axisPlacement', value: 'right' },
        ]),
    )
    .withPanel(
      chart({
        title: 'Who reads, who is there',
        help: 'Connections, readers of /events, participants of the ROS 2 graph.',
        width: 24,
        height: 6,
      })
        .withTarget(curve(`edge_health_http_connections{${ONE}}`, 'connections'))
        .withTarget(curve(`edge_health_event_streams{${ONE}}`, 'event streams'))
        .withTarget(curve(`edge_health_ros_peers{${ONE}}`, 'ROS 2 peers'))
        .withTarget(curve(`rate(edge_health_gathered_statuses_total{${ONE}}[$__rate_interval])`, 'statuses gathered a second')),
    );
}

function operations(to: DashboardBuilder): DashboardBuilder {
  return to
    .withRow(new RowBuilder('Operations'))
    .withPanel(
      stat({ title: 'Scheduler', help: 'edge-health-ops.', width: 4, height: 9 })
        .unit('bool_on_off')
        .thresholds(rising([1, 'good']))
        .withTarget(now(`edge_health_ops_scheduler_up{${ONE}}`)),
    )
    .withPanel(
      joined(
        table({ title: 'Jobs', help: 'Their last runs.', width: 20 })
          .withTarget(rows('A', `max by (ops_job, status) (edge_health_ops_job_last_status{${ONE}} == 1)`))
          .withTarget(rows('B', `max by (ops_job) (edge_health_ops_job_last_run_timestamp_seconds{${ONE}}) * 1000`))
          .withTarget(rows('C', `max by (ops_job) (edge_health_ops_job_last_duration_seconds{${ONE}})`))
          .withTarget(rows('D', `max by (ops_job) (instance_ops_job:edge_health_ops_job_last_success:age_seconds{${ONE}})`))
          .withTarget(rows('E', `max by (ops_job) (edge_health_ops_job_next_run_timestamp_seconds{${ONE}}) * 1000`))
          .withTarget(rows('F', `max by (ops_job) (edge_health_ops_job_runs_total{${ONE}})`))
          .withTarget(rows('G', `max by (ops_job) (edge_health_ops_job_failures_total{${ONE}})`))
          .withTarget(rows('H', `max by (ops_job) (edge_health_ops_job_missed_runs_total{${ONE}})`)),
        {
          ops_job: 'Job',
          status: 'Ended with',
          'Value #B': 'Last run',
          'Value #C': 'Took',
          'Value #D': 'Since success',
          'Value #E': 'Next run',
          'Value #F': 'Runs',
          'Value #G': 'Failed',
          'Value #H': 'Missed',
        },
      )
        .overrideByRegexp('^(Last run|Next run)$', [{ id: 'unit', value: 'dateTimeFromNow' }])
        .overrideByRegexp('^(Took|Since success)$', [{ id: 'unit', value: 's' }]),
    );
}
