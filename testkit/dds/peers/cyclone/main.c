#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "peer.h"

dds_entity_t checked(const char *what, dds_return_t result) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", what, dds_strretcode(-result));
  exit(1);
}

/* Without options that need a configuration, CYCLONEDDS_URI applies. */
static void configure_domain(const struct options *options) {
  if (options->address_count == 0 && options->peer_count == 0 && options->multicast && options->max_message_bytes == 0 &&
      options->lease_seconds == 0)
    return;
  char xml[4096];
  size_t used = (size_t)snprintf(xml, sizeof xml, "<Domain id=\"any\"><General>");
#define APPEND(...) used += (size_t)snprintf(xml + used, sizeof xml - used, __VA_ARGS__)
  if (options->address_count > 0) {
    APPEND("<Interfaces>");
    for (int i = 0; i < options->address_count; i++)
      APPEND("<NetworkInterface address=\"%s\" multicast=\"%s\"/>", options->addresses[i], options->multicast ? "true" : "false");
    APPEND("</Interfaces>");
  }
  APPEND("<AllowMulticast>%s</AllowMulticast>", options->multicast ? "true" : "false");
  if (options->max_message_bytes > 0) APPEND("<MaxMessageSize>%uB</MaxMessageSize>", options->max_message_bytes);
  APPEND("</General>");
  APPEND("<Discovery>");
  if (options->lease_seconds > 0)
    APPEND("<LeaseDuration>%.0fms</LeaseDuration><SPDPInterval>%.0fms</SPDPInterval>", options->lease_seconds * 1000,
           options->lease_seconds * 1000 / 6);
  if (options->peer_count > 0) {
    APPEND("<Peers>");
    for (int i = 0; i < options->peer_count; i++) APPEND("<Peer Address=\"%s\"/>", options->peers[i]);
    APPEND("</Peers><ParticipantIndex>auto</ParticipantIndex>");
  }
  APPEND("</Discovery>");
  APPEND("</Domain>");
#undef APPEND
  checked("domain", dds_create_domain(options->domain, xml));
}

dds_entity_t create_participant(const struct options *options) {
  configure_domain(options);
  dds_qos_t *qos = dds_create_qos();
  dds_qset_userdata(qos, PARTICIPANT_USER_DATA, strlen(PARTICIPANT_USER_DATA));
  dds_entity_t participant = checked("participant", dds_create_participant(options->domain, qos, NULL));
  dds_delete_qos(qos);
  return participant;
}

dds_qos_t *endpoint_qos(int reliable, int transient_local, int depth, const char *user_data) {
  dds_qos_t *qos = dds_create_qos();
  dds_qset_writer_data_lifecycle(qos, false);
  dds_qset_reliability(qos, reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, reliable ? DDS_INFINITY : 0);
  dds_qset_durability(qos, transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  dds_history_kind_t history = depth > 0 ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL;
  dds_qset_history(qos, history, depth);
  /* Cyclone DDS has a separate setting for the history of late joiners. */
  if (transient_local)
    dds_qset_durability_service(qos, 0, history, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
  if (user_data[0] != '\0') dds_qset_userdata(qos, user_data, strlen(user_data));
  return qos;
}

dds_entity_t create_topic_named(dds_entity_t participant, const dds_topic_descriptor_t *layout, const char *type_name, const char *topic_name) {
  const dds_topic_descriptor_t descriptor = {
      .m_size = layout->m_size,
      .m_align = layout->m_align,
      .m_flagset = layout->m_flagset,
      .m_nkeys = layout->m_nkeys,
      .m_typename = type_name,
      .m_keys = layout->m_keys,
      .m_nops = layout->m_nops,
      .m_ops = layout->m_ops,
      .m_meta = layout->m_meta,
  };
  return checked(topic_name, dds_create_topic(participant, &descriptor, topic_name, NULL, NULL));
}

void event_guid(const char *key, dds_entity_t entity) {
  dds_guid_t guid;
  if (dds_get_guid(entity, &guid) < 0) event_null(key);
  else event_bytes(key, guid.v, sizeof guid.v);
}

static void event_match(const char *key, dds_builtintopic_endpoint_t *endpoint) {
  if (endpoint == NULL) {
    event_null(key);
    return;
  }
  event_bytes(key, endpoint->key.v, sizeof endpoint->key.v);
  dds_builtintopic_free_endpoint(endpoint);
}

void event_writer_guid(const char *key, dds_entity_t reader, dds_instance_handle_t writer) {
  event_match(key, dds_get_matched_publication_data(reader, writer));
}

void event_reader_guid(const char *key, dds_entity_t writer, dds_instance_handle_t reader) {
  event_match(key, dds_get_matched_subscription_data(writer, reader));
}

int main(int argc, char **argv) {
  struct options options;
  start_process();
  read_options(argc, argv, &options);
  int done = 1;
  switch (options.mode) {
    case MODE_SUBSCRIBE: subscribe(&options); break;
    case MODE_PUBLISH: publish(&options); break;
    case MODE_CALL: done = call(&options); break;
    case MODE_GRAPH: graph(&options); break;
    case MODE_DISCOVERY: discovery(&options); break;
  }
  /* Announces the leave; a killed peer does not. */
  dds_delete(DDS_CYCLONEDDS_HANDLE);
  return done ? 0 : 3;
}
