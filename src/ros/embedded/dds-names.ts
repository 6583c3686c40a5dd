import type { MessageType } from '../interfaces.ts';

/**
 * The mapping of ROS 2 names to DDS names (design.ros2.org, "Topic and Service name mapping to DDS"), identical in rmw_cyclonedds and
 * rmw_fastrtps. Names are fully qualified: /robot1/health_status.
 */
export const topicOf = (name: string): string => `rt${name}`;
/** The ROS 2 name of a DDS topic. For DDS topics that are not ROS 2 topics, such as a service's, the result is not a valid name. */
export const nameOf = (topic: string): string => topic.replace(/^rt/, '');
export const requestTopicOf = (service: string): string => `rq${service}Request`;
export const replyTopicOf = (service: string): string => `rr${service}Reply`;

/** USER_DATA of an endpoint since Iron (rmw_dds_common, encode_type_hash_for_user_data_qos); peers log a warning without it. */
export const typeHashData = ({ typeHash }: MessageType): string => `typehash=${typeHash};`;

/** Whether an endpoint is from Iron or later, which announces the hash of the type. */
export const hasTypeHash = (userData: string): boolean => userData.includes('typehash=');

/** rmw_cyclonedds: the id shared by the request writer and the reply reader of a client; null: none announced. */
export function clientIdOf(userData: string): string | null {
  return /(?:^|;)clientid=([^;]*);/.exec(userData)?.[1] ?? null;
}
