/* ros_discovery_info: the nodes of a participant and their endpoints. */
#include <stdlib.h>
#include <string.h>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "peer.h"
#include "ros_types.h"

static const char TYPE_NAME[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";
static const char TOPIC_NAME[] = "ros_discovery_info";

typedef rmw_dds_common_msg_dds__ParticipantEntitiesInfo_ Entities;
typedef rmw_dds_common_msg_dds__ParticipantEntitiesInfo24_ Entities24;

/* The two layouts differ only in the size of a gid, so the same code serves both. */
#define GIDS(key, sequence)                                                                     \
  do {                                                                                          \
    event_open(key, '[');                                                                       \
    for (uint32_t k = 0; k < (sequence)._length; k++)                                           \
      event_bytes(NULL, (sequence)._buffer[k].data, sizeof (sequence)._buffer[k].data);         \
    event_close(']');                                                                           \
  } while (0)

#define ENTITIES(entities)                                                                      \
  do {                                                                                          \
    event_bytes("gid", (entities)->gid.data, sizeof (entities)->gid.data);                      \
    event_open("nodes", '[');                                                                   \
    for (uint32_t i = 0; i < (entities)->node_entities_info_seq._length; i++) {                 \
      event_open(NULL, '{');                                                                    \
      event_text("namespace", (entities)->node_entities_info_seq._buffer[i].node_namespace);    \
      event_text("name", (entities)->node_entities_info_seq._buffer[i].node_name);              \
      GIDS("readers", (entities)->node_entities_info_seq._buffer[i].reader_gid_seq);            \
      GIDS("writers", (entities)->node_entities_info_seq._buffer[i].writer_gid_seq);            \
      event_close('}');                                                                         \
    }                                                                                           \
    event_close(']');                                                                           \
  } while (0)

static void on_data(dds_entity_t reader, void *argument) {
  const struct options *options = argument;
  void *samples[1] = {NULL};
  dds_sample_info_t info[1];
  while (dds_take(reader, samples, info, 1, 1) > 0) {
    if (info[0].valid_data) {
      event_begin("entities");
      event_writer_guid("writer", reader, info[0].publication_handle);
      if (options->ros == ROS_HUMBLE) ENTITIES((const Entities24 *)samples[0]);
      else ENTITIES((const Entities *)samples[0]);
      event_end();
    }
    dds_return_loan(reader, samples, 1);
  }
}

/* Announces one node without endpoints for this participant. */
static void announce(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos, const struct options *options) {
  dds_entity_t writer = checked("writer", dds_create_writer(participant, topic, qos, NULL));
  char *space = strdup(options->announce);
  char *name = strrchr(space, '/');
  if (name == NULL) checked("a node's full name begins with a slash", DDS_RETCODE_BAD_PARAMETER);
  *name++ = '\0';
  char *node_namespace = space[0] == '\0' ? "/" : space;
  dds_guid_t guid;
  checked("guid", dds_get_guid(participant, &guid));
#define WRITE(Info, Node)                                                                                       \
  do {                                                                                                          \
    Node node = {.node_namespace = node_namespace, .node_name = name};                                          \
    Info info = {.node_entities_info_seq = {._maximum = 1, ._length = 1, ._buffer = &node, ._release = false}}; \
    memcpy(info.gid.data, guid.v, sizeof guid.v);                                                               \
    checked("write", dds_write(writer, &info));                                                                 \
  } while (0)
  if (options->ros == ROS_HUMBLE) WRITE(Entities24, rmw_dds_common_msg_dds__NodeEntitiesInfo24_);
  else WRITE(Entities, rmw_dds_common_msg_dds__NodeEntitiesInfo_);
#undef WRITE
  free(space);
}

void graph(const struct options *options) {
  dds_entity_t participant = create_participant(options);
  char user_data[256];
  endpoint_user_data(user_data, sizeof user_data, options->ros, "", ENTITIES_HASH);
  const dds_topic_descriptor_t *layout = options->ros == ROS_HUMBLE ? &rmw_dds_common_msg_dds__ParticipantEntitiesInfo24__desc
                                                                    : &rmw_dds_common_msg_dds__ParticipantEntitiesInfo__desc;
  dds_entity_t topic = create_topic_named(participant, layout, TYPE_NAME, TOPIC_NAME);
  dds_qos_t *qos = endpoint_qos(1, 1, 1, user_data);
  if (options->announce != NULL) announce(participant, topic, qos, options);
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, DDS_LENGTH_UNLIMITED);
  dds_qset_ignorelocal(qos, DDS_IGNORELOCAL_PARTICIPANT);
  dds_listener_t *listener = dds_create_listener((void *)options);
  dds_lset_data_available(listener, on_data);
  dds_entity_t reader = checked("reader", dds_create_reader(participant, topic, qos, listener));
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  event_begin("reader");
  event_guid("guid", reader);
  event_end();
  while (!must_end(60e3)) continue;
}
