#include <stdlib.h>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "messages.h"
#include "peer.h"

static void on_data(dds_entity_t reader, void *argument) {
  const struct topic *topic = argument;
  enum { BATCH = 16 };
  void *samples[BATCH] = {NULL};
  dds_sample_info_t infos[BATCH];
  for (int count; (count = dds_take(reader, samples, infos, BATCH, BATCH)) > 0;) {
    double now = dds_time() / 1e6;
    for (int i = 0; i < count; i++) {
      event_begin(infos[i].valid_data ? "sample" : "instance");
      event_text("topic", topic->ros_name);
      event_writer_guid("writer", reader, infos[i].publication_handle);
      if (infos[i].valid_data) {
        event_number("source_ms", infos[i].source_timestamp / 1e6);
        event_number("latency_ms", now - infos[i].source_timestamp / 1e6);
        event_open("data", '{');
        print_message(topic->message, samples[i]);
        event_close('}');
      } else {
        event_text("state", infos[i].instance_state == DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE ? "disposed" : "no_writers");
      }
      event_end();
    }
    dds_return_loan(reader, samples, count);
  }
}

static void on_matched(dds_entity_t reader, const dds_subscription_matched_status_t status, void *argument) {
  const struct topic *topic = argument;
  event_begin(status.current_count_change > 0 ? "matched" : "unmatched");
  event_text("topic", topic->ros_name);
  event_integer("current", status.current_count);
  event_writer_guid("peer", reader, status.last_publication_handle);
  event_end();
}

static void on_lost(dds_entity_t reader, const dds_sample_lost_status_t status, void *argument) {
  const struct topic *topic = argument;
  (void)reader;
  event_begin("lost");
  event_text("topic", topic->ros_name);
  event_integer("total", status.total_count);
  event_end();
}

static void on_incompatible(dds_entity_t reader, const dds_requested_incompatible_qos_status_t status, void *argument) {
  const struct topic *topic = argument;
  (void)reader;
  event_begin("incompatible");
  event_text("topic", topic->ros_name);
  event_integer("policy", status.last_policy_id);
  event_end();
}

static void on_deadline_missed(dds_entity_t reader, const dds_requested_deadline_missed_status_t status, void *argument) {
  const struct topic *topic = argument;
  (void)reader;
  event_begin("deadline_missed");
  event_text("topic", topic->ros_name);
  event_integer("total", status.total_count);
  event_end();
}

static void on_liveliness(dds_entity_t reader, const dds_liveliness_changed_status_t status, void *argument) {
  const struct topic *topic = argument;
  (void)reader;
  event_begin("liveliness");
  event_text("topic", topic->ros_name);
  event_integer("alive", status.alive_count);
  event_integer("not_alive", status.not_alive_count);
  event_end();
}

static void subscribe_to(dds_entity_t participant, const struct options *options, const struct topic *topic) {
  char user_data[256];
  endpoint_user_data(user_data, sizeof user_data, options->ros, "", MESSAGE_HASHES[topic->message]);
  dds_qos_t *qos = endpoint_qos(options->reliable, options->transient_local, options->depth, user_data);
  if (options->deadline_seconds > 0) dds_qset_deadline(qos, (dds_duration_t)(options->deadline_seconds * 1e9));
  if (options->liveliness_lease_seconds > 0)
    dds_qset_liveliness(qos, DDS_LIVELINESS_AUTOMATIC, (dds_duration_t)(options->liveliness_lease_seconds * 1e9));
  dds_listener_t *listener = dds_create_listener((void *)topic);
  dds_lset_data_available(listener, on_data);
  dds_lset_subscription_matched(listener, on_matched);
  dds_lset_sample_lost(listener, on_lost);
  dds_lset_requested_incompatible_qos(listener, on_incompatible);
  dds_lset_requested_deadline_missed(listener, on_deadline_missed);
  dds_lset_liveliness_changed(listener, on_liveliness);
  dds_entity_t dds_topic =
      checked(topic->dds_name, dds_create_topic(participant, LAYOUTS[topic->message].descriptor, topic->dds_name, NULL, NULL));
  dds_entity_t reader = checked("reader", dds_create_reader(participant, dds_topic, qos, listener));
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  event_begin("reader");
  event_text("topic", topic->ros_name);
  event_guid("guid", reader);
  event_end();
}

void subscribe(const struct options *options) {
  dds_entity_t participant = create_participant(options);
  for (int i = 0; i < options->topic_count; i++) subscribe_to(participant, options, &options->topics[i]);
  while (!must_end(60e3)) continue;
}
