/* Remote participants and endpoints from the builtin topics. Cyclone DDS does not provide vendor and locators there. */
#include <string.h>

#include "../common/events.h"
#include "../common/process.h"
#include "peer.h"

enum { PREFIX_BYTES = 12 };

/* GUID prefix of the entities of this process; set before any reader is created. */
static dds_guid_t own;

static int is_own(const dds_guid_t *guid) { return memcmp(guid->v, own.v, PREFIX_BYTES) == 0; }

static void event_user_data(const dds_qos_t *qos) {
  void *data = NULL;
  size_t size = 0;
  if (!dds_qget_userdata(qos, &data, &size) || data == NULL) {
    event_text("user_data", "");
    return;
  }
  event_text_of("user_data", data, size);
  dds_free(data);
}

static void print_participant(const dds_builtintopic_participant_t *participant, int alive) {
  if (is_own(&participant->key)) return;
  event_begin(alive ? "participant" : "participant_gone");
  event_bytes("guid", participant->key.v, sizeof participant->key.v);
  if (alive) event_user_data(participant->qos);
  event_end();
}

static void print_endpoint(const dds_builtintopic_endpoint_t *endpoint, int alive, const char *kind) {
  if (is_own(&endpoint->key)) return;
  event_begin(alive ? "endpoint" : "endpoint_gone");
  event_text("kind", kind);
  event_bytes("guid", endpoint->key.v, sizeof endpoint->key.v);
  if (alive) {
    dds_reliability_kind_t reliability = DDS_RELIABILITY_BEST_EFFORT;
    dds_durability_kind_t durability = DDS_DURABILITY_VOLATILE;
    dds_qget_reliability(endpoint->qos, &reliability, NULL);
    dds_qget_durability(endpoint->qos, &durability);
    event_bytes("participant", endpoint->participant_key.v, sizeof endpoint->participant_key.v);
    event_text("topic", endpoint->topic_name);
    event_text("type", endpoint->type_name);
    event_text("reliability", reliability == DDS_RELIABILITY_RELIABLE ? "reliable" : "best-effort");
    event_text("durability", durability == DDS_DURABILITY_VOLATILE ? "volatile" : "transient-local");
    event_user_data(endpoint->qos);
  }
  event_end();
}

static void on_data(dds_entity_t reader, void *argument) {
  const char *kind = argument;
  void *samples[1] = {NULL};
  dds_sample_info_t info[1];
  while (dds_take(reader, samples, info, 1, 1) > 0) {
    int alive = info[0].instance_state == DDS_ALIVE_INSTANCE_STATE;
    if (kind == NULL) print_participant(samples[0], alive);
    else print_endpoint(samples[0], alive, kind);
    dds_return_loan(reader, samples, 1);
  }
}

static void watch(dds_entity_t participant, dds_entity_t topic, const char *kind) {
  dds_listener_t *listener = dds_create_listener((void *)kind);
  dds_lset_data_available(listener, on_data);
  dds_entity_t reader = checked("builtin reader", dds_create_reader(participant, topic, NULL, listener));
  dds_delete_listener(listener);
  /* Samples from before the reader was created raise no event. */
  on_data(reader, (void *)kind);
}

void discovery(const struct options *options) {
  dds_entity_t participant = create_participant(options);
  checked("guid", dds_get_guid(participant, &own));
  event_begin("reader");
  event_guid("guid", participant);
  event_end();
  watch(participant, DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, NULL);
  watch(participant, DDS_BUILTIN_TOPIC_DCPSPUBLICATION, "writer");
  watch(participant, DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION, "reader");
  while (!must_end(60e3)) continue;
}
