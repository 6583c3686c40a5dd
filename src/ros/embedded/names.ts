import type { MessageType } from '../interfaces.ts';

/**
 * How ROS 2 names become DDS names (design.ros2.org, "Topic and Service name mapping to DDS"; rmw_cyclonedds and rmw_fastrtps do the same).
 * Names are fully qualified: /robot1/health_status.
 */
export const topicOf = (name: string): string => `rt${name}`;
/** The topic that a DDS topic is; of another one, such as a service's, it is no valid name. */
export const nameOf = (topic: string): string => topic.replace(/^rt/, '');
export const requestTopicOf = (service: string): string => `rq${service}Request`;
export const replyTopicOf = (service: string): string => `rr${service}Reply`;

/** USER_DATA of an endpoint from Iron on (rmw_dds_common, encode_type_hash_for_user_data_qos): without it peers warn. */
export const typeHashData = ({ typeHash }: MessageType): string => `typehash=${typeHash};`;

/** Whether an endpoint is of Iron or later: it tells the hash of its type. */
export const tellsTypeHash = (userData: string): boolean => userData.includes('typehash=');

/** rmw_cyclonedds: which request writer and reply reader are of one client. Null: it does not tell. */
export function clientIdOf(userData: string): string | null {
  return /(?:^|;)clientid=([^;]*);/.exec(userData)?.[1] ?? null;
}
