import { readFileSync } from 'node:fs';
import t from 'tap';
import * as generated from './interfaces.generated.ts';
import type { Layout, MessageType, ServiceType } from './interfaces.ts';

/** Names and hashes as the generator of ROS 2 wrote them. */
const EXPECTED = JSON.parse(readFileSync(new URL('../../testkit/fixtures/ros2-type-hashes.json', import.meta.url), 'utf8')) as Record<
  string,
  string
>;
const types = Object.values(generated) as (MessageType | ServiceType | Layout)[];
const hashed = types.filter((type): type is MessageType => 'typeHash' in type);

t.test('every hash is the one that ROS 2 computed', async (t) => {
  for (const { rosName, typeHash } of hashed) t.equal(typeHash, EXPECTED[rosName], rosName);
  t.ok(hashed.length >= 16, `${hashed.length} types`);
});

t.test('names in DDS follow those in ROS', async (t) => {
  t.equal(generated.HEALTH_STATUS.ddsName, 'edge_health_interfaces::msg::dds_::HealthStatus_');
  t.equal(generated.SAFE_SHUTDOWN.request.ddsName, 'edge_health_interfaces::srv::dds_::SafeShutdown_Request_');
  t.equal(generated.PARTICIPANT_ENTITIES_INFO.ddsName, 'rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_');
});

t.test('fields keep their order, and refer to each other', async (t) => {
  t.same(generated.HEALTH_STATUS.fields, [
    ['cpu_percent', 'float64'],
    ['memory_percent', 'float64'],
    ['disk_percent', 'float64'],
    ['temperature', 'float64'],
    ['status', 'string'],
    ['node_name', 'string'],
    ['timestamp', 'string'],
  ]);
  t.same(
    generated.ALERT.fields.map(([name]) => name),
    ['alert_id', 'severity', 'metric', 'value', 'threshold', 'timestamp', 'resolved'],
  );
  t.same(generated.DIAGNOSTIC_ARRAY.fields[1], ['status', { sequence: generated.DIAGNOSTIC_STATUS }]);
  t.same(generated.DIAGNOSTIC_STATUS.fields[0], ['level', 'uint8']);
});

t.test('a gid is 16 bytes, and 24 in Humble', async (t) => {
  t.same(generated.GID.fields, [['data', { array: 'uint8', length: 16 }]]);
  t.same(generated.HUMBLE_GID.fields, [['data', { array: 'uint8', length: 24 }]]);
  t.same(generated.HUMBLE_PARTICIPANT_ENTITIES_INFO.fields[0], ['gid', generated.HUMBLE_GID]);
});
