#include <stdlib.h>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "messages.h"
#include "peer.h"

static void on_matched(dds_entity_t writer, const dds_publication_matched_status_t status, void *argument) {
  const struct topic *topic = argument;
  event_begin(status.current_count_change > 0 ? "matched" : "unmatched");
  event_text("topic", topic->ros_name);
  event_integer("current", status.current_count);
  event_reader_guid("peer", writer, status.last_subscription_handle);
  event_end();
}

static void on_incompatible(dds_entity_t writer, const dds_offered_incompatible_qos_status_t status, void *argument) {
  (void)writer;
  const struct topic *topic = argument;
  event_begin("incompatible");
  event_text("topic", topic->ros_name);
  event_integer("policy", status.last_policy_id);
  event_end();
}

static dds_entity_t create_writer(const struct options *options, const struct topic *topic) {
  dds_entity_t participant = create_participant(options);
  char user_data[256];
  endpoint_user_data(user_data, sizeof user_data, options->ros, "", MESSAGE_HASHES[topic->message]);
  dds_qos_t *qos = endpoint_qos(options->reliable, options->transient_local, options->depth, user_data);
  dds_listener_t *listener = dds_create_listener((void *)topic);
  dds_lset_publication_matched(listener, on_matched);
  dds_lset_offered_incompatible_qos(listener, on_incompatible);
  dds_entity_t dds_topic =
      checked(topic->dds_name, dds_create_topic(participant, LAYOUTS[topic->message].descriptor, topic->dds_name, NULL, NULL));
  dds_entity_t writer = checked("writer", dds_create_writer(participant, dds_topic, qos, listener));
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  event_begin("writer");
  event_text("topic", topic->ros_name);
  event_guid("guid", writer);
  event_end();
  return writer;
}

static void await_readers(dds_entity_t writer, int readers) {
  dds_publication_matched_status_t status = {0};
  do {
    dds_get_publication_matched_status(writer, &status);
  } while ((int)status.current_count < readers && !must_end(5));
}

static void write_sample(dds_entity_t writer, const struct options *options, const struct topic *topic, long number) {
  const struct layout *layout = &LAYOUTS[topic->message];
  void *sample = calloc(1, layout->descriptor->m_size);
  if (sample == NULL) abort();
  fill_fields(layout->fields, sample, options, number);
  checked("write", dds_write(writer, sample));
  release_fields(layout->fields, sample);
  free(sample);
  event_begin("written");
  event_text("topic", topic->ros_name);
  event_integer("number", number);
  event_end();
}

void publish(const struct options *options) {
  const struct topic *topic = &options->topics[0];
  if (LAYOUTS[topic->message].fields == NULL) checked("publishing this type", DDS_RETCODE_UNSUPPORTED);
  dds_entity_t writer = create_writer(options, topic);
  await_readers(writer, options->await_readers);
  double start = steady_ms();
  for (long number = 1; options->count == 0 || number <= options->count; number++) {
    double due = options->hertz > 0 ? start + (number - 1) * 1e3 / options->hertz : 0;
    double wait = due - steady_ms();
    if (must_end(wait > 0 ? wait : 0)) break;
    write_sample(writer, options, topic, number);
  }
  if (options->stay) {
    while (!must_end(60e3)) continue;
  }
  dds_wait_for_acks(writer, DDS_SECS(5));
}
