import * as v from 'valibot';
import { MAX_NODE_NAME } from '../core/node-name.ts';
import { OBSERVE_MODES } from '../core/observer.ts';
import { about, addressOrNetwork, between, integer, positive, section, text, threshold, visible } from './keys.ts';
import { opsSchema } from './ops.ts';

/**
 * Type, range, default, unit and description of every key. The Config type, the validation, the commented default file and the reference
 * page are derived from it.
 */
export const configSchema = v.strictObject({
  node_name: v.optional(
    v.pipe(
      v.string(),
      v.regex(
        /^[A-Za-z_][A-Za-z0-9_]*$/,
        `a ROS node name: letters, digits and _, not beginning with a digit, at most ${MAX_NODE_NAME} together with ros.namespace and /`,
      ),
      v.maxLength(MAX_NODE_NAME),
      about('Name of this monitoring node, in every health status and alert id.'),
    ),
    'health_monitor',
  ),
  publish_frequency: v.optional(v.pipe(positive(1000), about('Health statuses per second.', { unit: 'Hz' })), 1.0),
  thresholds: section({
    cpu: threshold('CPU usage', 'percent', 80.0, 90.0, 0, 100),
    memory: threshold('memory usage', 'percent', 85.0, 95.0, 0, 100),
    disk: threshold('disk usage', 'percent', 80.0, 90.0, 0, 100),
    temperature: threshold('temperature', '°C', 70.0, 85.0, -40, 150),
  }),
  alerts: section({
    hysteresis_percent: v.optional(
      v.pipe(
        between(0, 50),
        about('An alert drops to the lower severity, or resolves, only once the value is this far below the threshold.', {
          unit: 'percent of the threshold',
          reload: true,
        }),
      ),
      5,
    ),
    raise_after_seconds: v.optional(
      v.pipe(
        between(0, 3600),
        about(
          'Raise an alert only after the value has stayed at or above the threshold for this long, so that a short spike raises none.',
          {
            unit: 's',
            reload: true,
          },
        ),
      ),
      3,
    ),
    clear_after_seconds: v.optional(
      v.pipe(
        between(0, 3600),
        about(
          'Lower or resolve an alert only after the value has stayed below the hysteresis for this long, so that a short dip clears none.',
          {
            unit: 's',
            reload: true,
          },
        ),
      ),
      10,
    ),
    sensor_timeout_seconds: v.optional(
      v.pipe(between(1, 3600), about('Raise ERROR if a working sensor gives no reading for this long.', { unit: 's', reload: true })),
      5,
    ),
    node_grace_seconds: v.optional(
      v.pipe(
        between(0, 3600),
        about('Raise ERROR if a remote node sends nothing for three of its periods plus this time.', { unit: 's', reload: true }),
      ),
      2,
    ),
    forget_node_after_hours: v.optional(
      v.pipe(
        between(0, 87_600),
        about('Remove a remote node and resolve its alerts after it has sent nothing for this long; 0: never.', {
          unit: 'h',
          reload: true,
        }),
      ),
      168,
    ),
  }),
  disk: section({
    paths: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^\//, 'an absolute path'), visible)),
        v.minLength(1),
        v.maxLength(32),
        about('Paths whose file systems are measured; `disk_percent` is the usage of the fullest one.'),
      ),
      ['/'],
    ),
  }),
  temperature: section({
    sensor: v.optional(
      v.nullable(
        v.pipe(
          text,
          about(
            "The sensor to read: a thermal zone's type (cpu-thermal) or hwmon-name/label (coretemp/Package id 0). `edge-health sensors` lists them.",
            { defaultIs: 'selected automatically' },
          ),
        ),
      ),
      null,
    ),
  }),
  storage: section({
    path: v.optional(
      v.nullable(
        v.pipe(
          text,
          about('Data folder. A relative path is below /var/lib/edge-health when installed from the package, else below the checkout.', {
            defaultIs: '/var/lib/edge-health; in a checkout, data',
          }),
        ),
      ),
      null,
    ),
    max_megabytes: v.optional(
      v.pipe(integer(8, 1_000_000), about('Maximum size of the database; the oldest raw samples are deleted first.', { unit: 'MB' })),
      512,
    ),
  }),
  rest: section({
    host: v.optional(v.nullable(v.pipe(text, about('Address to listen on.', { defaultIs: 'all addresses' }))), null),
    port: v.optional(v.pipe(integer(0, 65535), about('Port to listen on; 0 selects a free port and logs it.')), 5000),
    token_file: v.optional(
      v.nullable(
        v.pipe(
          text,
          about('File with the bearer token that clients must send; at least 16 characters. It is read again on every reload.', {
            defaultIs: 'no authentication',
            reload: true,
          }),
        ),
      ),
      null,
    ),
    allowed_origins: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^(\*|https?:\/\/[^/\s]+)$/, 'an origin such as https://dashboard.example:8443, or *'))),
        v.maxLength(64),
        about('Web origins allowed to read the API across origins (CORS).'),
      ),
      [],
    ),
    allowed_hosts: v.optional(
      v.pipe(
        v.array(
          v.pipe(
            v.string(),
            v.regex(/^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?$/, 'a host name such as robot-7.lab.example, without a port'),
          ),
        ),
        v.maxLength(64),
        about(
          "Additional host names by which clients may address the service. IP addresses, localhost and this machine's names are always allowed.",
          { reload: true },
        ),
      ),
      [],
    ),
    max_connections: v.optional(
      v.pipe(
        integer(8, 10_000),
        about(
          'Maximum number of connections; one client address may have half of them. Above it, the connection idle for longest is closed. This host has 16 more.',
        ),
      ),
      256,
    ),
    max_event_streams: v.optional(
      v.pipe(
        integer(1, 5_000),
        about('Maximum number of /events streams; one client address may have half of them. This host has 8 more.'),
      ),
      64,
    ),
  }),
  ros: section({
    transport: v.optional(
      v.pipe(v.picklist(['auto', 'rclnodejs', 'embedded', 'off']), about('How edge-health joins the ROS 2 graph.')),
      'auto',
    ),
    domain_id: v.optional(v.nullable(v.pipe(integer(0, 232), about('ROS 2 domain.', { defaultIs: 'ROS_DOMAIN_ID, otherwise 0' }))), null),
    discovery_range: v.optional(
      v.nullable(
        v.pipe(
          v.picklist(['SUBNET', 'LOCALHOST', 'OFF', 'SYSTEM_DEFAULT']),
          about('Reach of ROS 2 discovery.', { defaultIs: 'ROS_AUTOMATIC_DISCOVERY_RANGE, otherwise SUBNET' }),
        ),
      ),
      null,
    ),
    static_peers: v.optional(
      v.nullable(
        v.pipe(
          v.array(text),
          v.maxLength(64),
          about('Addresses of ROS 2 peers that multicast does not reach.', { defaultIs: 'ROS_STATIC_PEERS' }),
        ),
      ),
      null,
    ),
    namespace: v.optional(
      v.nullable(
        v.pipe(
          v.string(),
          v.regex(
            /^(\/|\/?[A-Za-z_][A-Za-z0-9_]*(\/[A-Za-z_][A-Za-z0-9_]*)*)$/,
            `a ROS namespace: names of letters, digits and _, separated by /, at most ${MAX_NODE_NAME} together with / and node_name`,
          ),
          v.maxLength(MAX_NODE_NAME),
          about('Namespace of nodes, topics and the service; also the prefix of node_name in health statuses and alert ids.', {
            defaultIs: 'none',
          }),
        ),
      ),
      null,
    ),
    observe: v.optional(
      v.pipe(
        v.picklist(OBSERVE_MODES),
        about(
          'Whether to receive the statuses and alerts of remote nodes. auto: if there are at most 4 appliances on the graph; if there are more, only on the elected ones.',
        ),
      ),
      'auto',
    ),
  }),
  safe_shutdown: section({
    enabled: v.optional(v.pipe(v.boolean(), about('Offer the service /safe_shutdown.')), true),
    action: v.optional(
      v.nullable(
        v.pipe(
          v.picklist(['poweroff', 'reboot', 'halt', 'dry-run']),
          about('Last step of a safe shutdown; dry-run performs every step except this one.', {
            defaultIs: 'dry-run in a checkout, poweroff in the package',
            reload: true,
          }),
        ),
      ),
      null,
    ),
    allow_from: v.optional(
      v.pipe(v.array(addressOrNetwork), v.maxLength(256), about('Other hosts allowed to request a safe shutdown.', { reload: true })),
      [],
    ),
    allow_groups: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[^\s:,/]{1,128}$/, 'names of groups'))),
        v.maxLength(256),
        about('Groups of this host whose members may request a safe shutdown. root is always allowed to.', { reload: true }),
      ),
      ['edge-health', 'sudo'],
    ),
    allow_users: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[^\s:,/]{1,128}$/, 'names of users'))),
        v.maxLength(256),
        about('Additional users of this host who may request a safe shutdown.', { reload: true }),
      ),
      [],
    ),
    trust_network: v.optional(
      v.pipe(
        v.boolean(),
        about('Accept requests without SROS2 from every user and container of this host, and with rclnodejs from any host.'),
      ),
      false,
    ),
    max_requests_per_minute: v.optional(
      v.pipe(
        integer(1, 600),
        about('Maximum number of requests of one caller, including refused ones; for all callers together, three times as many.', {
          reload: true,
        }),
      ),
      10,
    ),
    hooks_path: v.optional(
      v.nullable(
        v.pipe(
          text,
          about('Folder of executables to run first, in the order of their names; relative to the working directory.', {
            defaultIs: 'the folder shutdown.d beside this file',
            reload: true,
          }),
        ),
      ),
      null,
    ),
    stop_units: v.optional(
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
        about('systemd units to stop after the hooks, in this order.', { reload: true }),
      ),
      [],
    ),
  }),
  ops: opsSchema,
  log: section({
    level: v.optional(
      v.pipe(v.picklist(['error', 'warning', 'notice', 'info', 'debug']), about('Minimum level of log lines.', { reload: true })),
      'info',
    ),
  }),
});

export type Config = v.InferOutput<typeof configSchema>;
export const DEFAULT_CONFIG: Config = v.parse(configSchema, {});
