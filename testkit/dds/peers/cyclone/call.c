/* A service client as rmw_cyclonedds makes it: a header before the message contains the client id and the number of the request. */
#include <stdio.h>
#include <string.h>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "messages.h"
#include "peer.h"
#include "ros_types.h"

typedef edge_health_interfaces_srv_dds__SafeShutdown_RequestWithHeader_ Request;
typedef edge_health_interfaces_srv_dds__SafeShutdown_ResponseWithHeader_ Response;

struct client {
  const struct options *options;
  int number;
  dds_entity_t participant, writer, reader, readable;
  dds_instance_handle_t identity;
  int64_t sequence_number;
  double written_ms;
  int answers; /* to the request in progress */
};

static void open_client(struct client *client) {
  const struct options *options = client->options;
  client->participant = create_participant(options);
  dds_guid_t guid;
  checked("guid", dds_get_guid(client->participant, &guid));
  uint8_t id[16] = {0};
  memcpy(id, guid.v, 12);
  id[15] = 1;
  char own[128], user_data[256], name[256];
  client_user_data(own, sizeof own, id);

  endpoint_user_data(user_data, sizeof user_data, options->ros, own, REQUEST_HASH);
  dds_qos_t *qos = endpoint_qos(1, 0, 10, user_data);
  snprintf(name, sizeof name, "rq%sRequest", options->service);
  dds_entity_t topic = create_topic_named(client->participant, &edge_health_interfaces_srv_dds__SafeShutdown_RequestWithHeader__desc,
                                          "edge_health_interfaces::srv::dds_::SafeShutdown_Request_", name);
  client->writer = checked("request writer", dds_create_writer(client->participant, topic, qos, NULL));
  dds_delete_qos(qos);

  endpoint_user_data(user_data, sizeof user_data, options->ros, own, RESPONSE_HASH);
  qos = endpoint_qos(1, 0, 10, user_data);
  snprintf(name, sizeof name, "rr%sReply", options->service);
  topic = create_topic_named(client->participant, &edge_health_interfaces_srv_dds__SafeShutdown_ResponseWithHeader__desc,
                             "edge_health_interfaces::srv::dds_::SafeShutdown_Response_", name);
  client->reader = checked("reply reader", dds_create_reader(client->participant, topic, qos, NULL));
  dds_delete_qos(qos);
  checked("identity", dds_get_instance_handle(client->writer, &client->identity));

  client->readable = checked("waitset", dds_create_waitset(client->participant));
  dds_entity_t condition = checked("condition", dds_create_readcondition(client->reader, DDS_ANY_STATE));
  checked("waitset", dds_waitset_attach(client->readable, condition, 0));
}

/* The text between `serviceid=` and the semicolon of the endpoint's USER_DATA; empty if there is none. */
static void service_id_of(dds_builtintopic_endpoint_t *endpoint, char *id, size_t room) {
  void *data = NULL;
  size_t size = 0;
  id[0] = '\0';
  if (endpoint == NULL) return;
  if (dds_qget_userdata(endpoint->qos, &data, &size) && data != NULL) {
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)size, (const char *)data);
    const char *found = strstr(text, "serviceid=");
    if (found != NULL) snprintf(id, room, "%.*s", (int)strcspn(found + 10, ";"), found + 10);
    dds_free(data);
  }
  dds_builtintopic_free_endpoint(endpoint);
}

/* The criterion of rmw_cyclonedds: both endpoints matched, and of the same server if servers announce an id. */
static int server_available(const struct client *client, char *id, size_t room) {
  enum { MOST = 32 };
  dds_instance_handle_t readers[MOST], writers[MOST];
  int reader_count = dds_get_matched_subscriptions(client->writer, readers, MOST);
  int writer_count = dds_get_matched_publications(client->reader, writers, MOST);
  int named = 0;
  for (int i = 0; i < reader_count && i < MOST; i++) {
    char other[256];
    service_id_of(dds_get_matched_subscription_data(client->writer, readers[i]), id, room);
    if (id[0] == '\0') continue;
    named = 1;
    for (int k = 0; k < writer_count && k < MOST; k++) {
      service_id_of(dds_get_matched_publication_data(client->reader, writers[k]), other, sizeof other);
      if (strcmp(id, other) == 0) return 1;
    }
  }
  return !named && reader_count > 0 && writer_count > 0;
}

static int await_server(struct client *client) {
  double start = steady_ms();
  char id[256] = "";
  int available;
  while (!(available = server_available(client, id, sizeof id)) && steady_ms() - start < client->options->match_seconds * 1e3)
    if (must_end(2)) break;
  event_begin(available ? "service_matched" : "service_missing");
  event_integer("client", client->number);
  event_number("match_ms", steady_ms() - start);
  event_text("service_id", id);
  event_guid("guid", client->reader);
  event_end();
  return available;
}

static void send_request(struct client *client) {
  Request request = {.client = client->identity, .sequence_number = ++client->sequence_number};
  fill_fields(REQUEST_FIELDS, &request, client->options, 0);
  client->answers = 0;
  client->written_ms = steady_ms();
  checked("request", dds_write(client->writer, &request));
  release_fields(REQUEST_FIELDS, &request);
}

static void take_replies(struct client *client) {
  void *samples[1] = {NULL};
  dds_sample_info_t info[1];
  while (dds_take(client->reader, samples, info, 1, 1) > 0) {
    const Response *reply = samples[0];
    if (info[0].valid_data) {
      int own = reply->client == client->identity;
      int answers = own && reply->sequence_number == client->sequence_number;
      event_begin("reply");
      event_integer("client", client->number);
      event_integer("request", reply->sequence_number);
      event_flag("own", own);
      event_flag("repeated", own && (!answers || client->answers > 0));
      event_number("round_trip_ms", steady_ms() - client->written_ms);
      event_open("data", '{');
      event_flag("success", reply->success);
      event_text("message", reply->message);
      event_close('}');
      event_end();
      client->answers += answers;
    }
    dds_return_loan(client->reader, samples, 1);
  }
}

/* Takes replies for `ms`, or until the answer arrives if `until_answered`. */
static void listen_for(struct client *client, double ms, int until_answered) {
  double until = steady_ms() + ms;
  for (double left; (left = until - steady_ms()) > 0 && !must_end(0);) {
    dds_attach_t triggered;
    dds_waitset_wait(client->readable, &triggered, 1, (dds_duration_t)((left < 50 ? left : 50) * 1e6));
    take_replies(client);
    if (until_answered && client->answers > 0) return;
  }
}

static int run_client(const struct options *options, int number) {
  struct client client = {.options = options, .number = number};
  open_client(&client);
  int done = await_server(&client);
  for (int i = 0; done && i < options->repeat; i++) {
    if (i > 0) listen_for(&client, options->interval_ms, 0);
    send_request(&client);
    listen_for(&client, options->reply_seconds * 1e3, 1);
    if (client.answers == 0) {
      done = 0;
      event_begin("timeout");
      event_integer("client", number);
      event_integer("request", client.sequence_number);
      event_end();
    }
  }
  if (done) listen_for(&client, options->listen_ms, 0);
  /* Deleting the domain discards its discovery data, so that the next client starts without any. */
  dds_delete(dds_get_parent(client.participant));
  return done;
}

int call(const struct options *options) {
  int done = 1;
  for (int number = 1; number <= options->clients && !must_end(0); number++) done &= run_client(options, number);
  return done;
}
