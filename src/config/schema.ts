import * as v from 'valibot';
import { MAX_NODE_NAME } from '../core/node-name.ts';
import { OBSERVE_MODES } from '../core/observer.ts';
import { addressOrNetwork, between, integer, key, positive, section, text, threshold, unset, visible } from './keys.ts';
import { opsSchema } from './ops.ts';

/**
 * Type, range, default, unit and description of every key. The Config type, the validation, the commented default file and the reference
 * page are derived from it.
 */
export const configSchema = v.strictObject({
  node_name: key(
    v.pipe(
      v.string(),
      v.regex(
        /^[A-Za-z_][A-Za-z0-9_]*$/,
        `a ROS node name: letters, digits and _, not beginning with a digit, at most ${MAX_NODE_NAME} together with ros.namespace and /`,
      ),
      v.maxLength(MAX_NODE_NAME),
    ),
    'health_monitor',
    'Name of this monitoring node, in every health status and alert id.',
  ),
  publish_frequency: key(positive(1000), 1.0, 'Health statuses per second.', { unit: 'Hz' }),
  thresholds: section({
    cpu: threshold('CPU usage', 'percent', [80, 90], [0, 100], { raiseAfter: '30' }),
    memory: threshold('memory usage', 'percent', [85, 95], [0, 100]),
    disk: threshold('disk usage', 'percent', [80, 90], [0, 100]),
    temperature: threshold('temperature', '°C', [70, 85], [-40, 150]),
  }),
  alerts: section({
    hysteresis_percent: key(
      between(0, 50),
      5,
      'An alert drops to the lower severity, or resolves, only once the value is this far below the threshold.',
      { unit: 'percent of the threshold', reload: true },
    ),
    raise_after_seconds: key(
      between(0, 3600),
      3,
      'Raise an alert only after the value has stayed at or above the threshold for this long, so that a short spike raises none.',
      { unit: 's', reload: true },
    ),
    clear_after_seconds: key(
      between(0, 3600),
      10,
      'Lower or resolve an alert only after the value has stayed below the hysteresis for this long, so that a short dip clears none.',
      { unit: 's', reload: true },
    ),
    sensor_timeout_seconds: key(between(1, 3600), 5, 'Raise ERROR if a working sensor gives no reading for this long.', {
      unit: 's',
      reload: true,
    }),
    node_grace_seconds: key(between(0, 3600), 2, 'Raise ERROR if a remote node sends nothing for three of its periods plus this time.', {
      unit: 's',
      reload: true,
    }),
    forget_node_after_hours: key(
      between(0, 87_600),
      168,
      'Remove a remote node and resolve its alerts after it has sent nothing for this long; 0: never.',
      { unit: 'h', reload: true },
    ),
  }),
  disk: section({
    paths: key(
      v.pipe(v.array(v.pipe(v.string(), v.regex(/^\//, 'an absolute path'), visible)), v.minLength(1), v.maxLength(32)),
      ['/'],
      'Paths whose file systems are measured; `disk_percent` is the usage of the fullest one. Inodes are judged by the same thresholds.',
    ),
  }),
  temperature: section({
    sensor: unset(
      text,
      'selected automatically',
      "The sensor to read: a thermal zone's type (cpu-thermal) or hwmon-name/label (coretemp/Package id 0). If several sensors have this name, @ and the place of the device on its bus follow (nvme/Composite@0000:01:00.0). `edge-health sensors` lists them.",
    ),
  }),
  storage: section({
    path: unset(
      text,
      '/var/lib/edge-health; in a checkout, data',
      'Data folder. A relative path is below /var/lib/edge-health when installed from the package, otherwise below the checkout.',
    ),
    max_megabytes: key(integer(8, 1_000_000), 512, 'Maximum size of the database; the oldest raw samples are deleted first.', {
      unit: 'MB',
    }),
  }),
  rest: section({
    host: unset(text, 'all addresses', 'Address to listen on.'),
    port: key(integer(0, 65535), 5000, 'Port to listen on; 0 selects a free port and logs it.'),
    token_file: unset(
      text,
      'no authentication',
      'File with the bearer token that clients must send; at least 16 characters. It is read again on every reload.',
      { reload: true },
    ),
    allowed_origins: key(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^(\*|https?:\/\/[^/\s]+)$/, 'an origin such as https://dashboard.example:8443, or *'))),
        v.maxLength(64),
      ),
      [],
      'Web origins allowed to read the API across origins (CORS).',
    ),
    allowed_hosts: key(
      v.pipe(
        v.array(
          v.pipe(
            v.string(),
            v.regex(/^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?$/, 'a host name such as robot-7.lab.example, without a port'),
          ),
        ),
        v.maxLength(64),
      ),
      [],
      "Additional host names by which clients may address the service. IP addresses, localhost and this machine's names are always allowed.",
      { reload: true },
    ),
    max_connections: key(
      integer(8, 10_000),
      256,
      'Maximum number of connections; one client may have half of them. Above it, the connection idle for longest is closed. This host has 16 more.',
    ),
    max_event_streams: key(
      integer(1, 5_000),
      64,
      'Maximum number of /events streams; one client may have half of them. This host has 8 more.',
    ),
  }),
  ros: section({
    transport: key(v.picklist(['auto', 'rclnodejs', 'embedded', 'off']), 'auto', 'How edge-health joins the ROS 2 graph.'),
    domain_id: unset(integer(0, 232), 'ROS_DOMAIN_ID, otherwise 0', 'ROS 2 domain.'),
    discovery_range: unset(
      v.picklist(['SUBNET', 'LOCALHOST', 'OFF', 'SYSTEM_DEFAULT']),
      'ROS_AUTOMATIC_DISCOVERY_RANGE, otherwise SUBNET',
      'Reach of ROS 2 discovery.',
    ),
    static_peers: unset(
      v.pipe(v.array(text), v.maxLength(64)),
      'ROS_STATIC_PEERS',
      'Addresses of ROS 2 peers that multicast does not reach.',
    ),
    namespace: unset(
      v.pipe(
        v.string(),
        v.regex(
          /^(\/|\/?[A-Za-z_][A-Za-z0-9_]*(\/[A-Za-z_][A-Za-z0-9_]*)*)$/,
          `a ROS namespace: names of letters, digits and _, separated by /, at most ${MAX_NODE_NAME} together with / and node_name`,
        ),
        v.maxLength(MAX_NODE_NAME),
      ),
      'none',
      'Namespace of nodes, topics and the service; also the prefix of node_name in health statuses and alert ids.',
    ),
    observe: key(
      v.picklist(OBSERVE_MODES),
      'auto',
      'Whether to receive the statuses and alerts of remote nodes. auto: if there are at most 4 appliances on the graph; if there are more, only on the elected ones.',
    ),
  }),
  safe_shutdown: section({
    enabled: key(v.boolean(), true, 'Offer the service /safe_shutdown.'),
    action: unset(
      v.picklist(['poweroff', 'reboot', 'halt', 'dry-run']),
      'dry-run in a checkout, poweroff in the package',
      'Last step of a safe shutdown; dry-run performs every step except this one.',
      { reload: true },
    ),
    allow_from: key(v.pipe(v.array(addressOrNetwork), v.maxLength(256)), [], 'Other hosts allowed to request a safe shutdown.', {
      reload: true,
    }),
    allow_groups: key(
      v.pipe(v.array(v.pipe(v.string(), v.regex(/^[^\s:,/]{1,128}$/, 'names of groups'))), v.maxLength(256)),
      ['edge-health', 'sudo'],
      'Groups of this host whose members may request a safe shutdown. root is always allowed to.',
      { reload: true },
    ),
    allow_users: key(
      v.pipe(v.array(v.pipe(v.string(), v.regex(/^[^\s:,/]{1,128}$/, 'names of users'))), v.maxLength(256)),
      [],
      'Additional users of this host who may request a safe shutdown.',
      { reload: true },
    ),
    trust_network: key(
      v.boolean(),
      false,
      'Accept requests without SROS2 from every user and container of this host, and with rclnodejs from any host.',
    ),
    max_requests_per_minute: key(
      integer(1, 600),
      10,
      'Maximum number of requests of one caller, including refused ones; for all callers together, three times as many.',
      { reload: true },
    ),
    hooks_path: unset(
      text,
      'the folder shutdown.d beside this file',
      'Folder of executables to run first, in the order of their names; relative to the working directory.',
      { reload: true },
    ),
    stop_units: key(
      v.pipe(
        v.array(
          v.pipe(
            v.string(),
            v.regex(
              /^(?!(edge-health(-(stop|udp).*)?|dbus(-broker)?|polkit|systemd-logind)(\.(service|socket))?$|(system\.slice|init\.scope)$)[A-Za-z0-9:_.@\\][A-Za-z0-9:_.@\\-]{0,254}$/,
              'names of systemd units such as robot.service, except those of edge-health and those needed for the power-off',
            ),
          ),
        ),
        v.maxLength(64),
      ),
      [],
      'systemd units to stop after the hooks, in this order.',
      { reload: true },
    ),
  }),
  ops: opsSchema,
  log: section({
    level: key(v.picklist(['error', 'warning', 'notice', 'info', 'debug']), 'info', 'Minimum level of log lines.', { reload: true }),
  }),
});

export type Config = v.InferOutput<typeof configSchema>;
export const DEFAULT_CONFIG: Config = v.parse(configSchema, {});
