/* The peer on Cyclone DDS. */
#ifndef PEER_H
#define PEER_H

#include "../common/options.h"
#include "dds/dds.h"

/* Ends the process with the reason if `result` is an error; otherwise returns it. */
dds_entity_t checked(const char *what, dds_return_t result);

dds_entity_t create_participant(const struct options *options);

/* QoS of an endpoint as rmw_cyclonedds sets it; `user_data` may be empty. Free it with dds_delete_qos. */
dds_qos_t *endpoint_qos(int reliable, int transient_local, int depth, const char *user_data);

/* Creates a topic whose type name on the wire differs from the name of the layout in the IDL. */
dds_entity_t create_topic_named(dds_entity_t participant, const dds_topic_descriptor_t *layout, const char *type_name, const char *topic_name);

/* "guid" of the entity, or of a match by its instance handle: null if it has already left. */
void event_guid(const char *key, dds_entity_t entity);
void event_writer_guid(const char *key, dds_entity_t reader, dds_instance_handle_t writer);
void event_reader_guid(const char *key, dds_entity_t writer, dds_instance_handle_t reader);

void subscribe(const struct options *options);
void publish(const struct options *options);
/* Whether every request was answered. */
int call(const struct options *options);
void graph(const struct options *options);
void discovery(const struct options *options);

#endif
