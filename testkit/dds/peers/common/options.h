/* The command line, the same for every peer. */
#ifndef OPTIONS_H
#define OPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

enum { MAX_LIST = 16 };

enum mode { MODE_SUBSCRIBE, MODE_PUBLISH, MODE_CALL, MODE_GRAPH, MODE_DISCOVERY };

enum message { HEALTH_STATUS, ALERT, ALERT_ARRAY, SHUTDOWN_STATUS, DIAGNOSTIC_ARRAY, MESSAGES };

/* What ROS 2 peers announce changed with Iron: type hashes, and a gid of 16 bytes instead of 24. */
enum ros { ROS_HUMBLE, ROS_IRON };

struct topic {
  char dds_name[256]; /* rt/… */
  const char *ros_name; /* as given */
  enum message message;
};

/* A field and the text of its value. */
struct setting {
  const char *field;
  const char *text;
};

struct options {
  enum mode mode;
  unsigned domain;
  const char *addresses[MAX_LIST]; /* addresses of the interfaces to use; none: the implementation's choice */
  int address_count;
  const char *peers[MAX_LIST]; /* addresses for unicast discovery */
  int peer_count;
  int multicast;
  double lease_seconds; /* announced six times as often; 0: the implementation's choice */
  unsigned max_message_bytes; /* 0: the implementation's choice */
  enum ros ros;

  struct topic topics[MAX_LIST];
  int topic_count;
  int reliable;
  int transient_local;
  int depth;
  double deadline_seconds; /* requested by subscribers; 0: none */
  double liveliness_lease_seconds;

  double hertz; /* 0: without a delay */
  long count; /* 0: until SIGTERM */
  int await_readers;
  int stay; /* do not leave after the last sample */
  const char *sequence_field; /* set to 1, 2, 3…; appended to a text; NULL: none */
  struct setting settings[MAX_LIST];
  int setting_count;

  const char *service;
  int clients; /* one after the other, each with its own participant */
  int repeat; /* requests of each client, one after the other */
  double interval_ms; /* between requests */
  double match_seconds;
  double reply_seconds;
  double listen_ms; /* after the last reply, to detect unexpected replies */

  const char *announce; /* a node's full name for ros_discovery_info; NULL: none */
};

/* Ends the process with a message and status 2 when the command line is wrong. */
void read_options(int argc, char **argv, struct options *options);

/* The text for a field, or NULL if it was not given. */
const char *setting_of(const struct options *options, const char *field);

#ifdef __cplusplus
}
#endif
#endif
