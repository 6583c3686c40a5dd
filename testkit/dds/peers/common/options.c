#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

static const char USAGE[] =
    "usage: peer-<implementation> MODE [OPTION…], events go to standard output as one JSON object per line\n"
    "\n"
    "modes:\n"
    "  subscribe   prints every sample of the topics\n"
    "  publish     writes samples to the first topic\n"
    "  call        calls a service of type SafeShutdown\n"
    "  graph       prints the messages of ros_discovery_info\n"
    "  discovery   prints discovered and lost participants and endpoints\n"
    "\n"
    "network:\n"
    "  --domain N              DDS domain (0)\n"
    "  --address ADDRESS       use this interface; may be repeated\n"
    "  --peer ADDRESS          discover this host by unicast; may be repeated\n"
    "  --no-multicast\n"
    "  --lease S               participant lease (default of the implementation)\n"
    "  --max-message-bytes N   send longer messages in fragments\n"
    "  --ros humble|iron       announce as this release (iron: type hashes, gids of 16 bytes)\n"
    "  --seconds S             exit after this time\n"
    "subscribe, publish:\n"
    "  --topic NAME[=TYPE]     ROS name, /robot/health_status; TYPE is known for the usual names,\n"
    "                          otherwise HealthStatus, Alert, AlertArray, ShutdownStatus or DiagnosticArray; may be repeated\n"
    "  --reliability reliable|best-effort    --durability transient-local|volatile    --depth N (10)\n"
    "subscribe:\n"
    "  --deadline S    --liveliness-lease S\n"
    "publish:\n"
    "  --hz N (1, 0: no pause)    --count N (0: no end)    --await-readers N    --stay (after the last sample)\n"
    "  --sequence FIELD        counts from 1 in this field, appended if it is a text\n"
    "publish, call:\n"
    "  --set FIELD=VALUE    --set-file FIELD=PATH\n"
    "call:\n"
    "  --service NAME (/safe_shutdown)    --clients N (1)    --repeat N (1)    --interval-ms N (0)\n"
    "  --match-seconds S (15)    --reply-seconds S (5)    --listen-ms N (0)\n"
    "graph:\n"
    "  --announce /NAMESPACE/NODE\n";

static void fail(const char *problem, const char *value) {
  fprintf(stderr, "%s%s%s\n%s", problem, value == NULL ? "" : ": ", value == NULL ? "" : value, USAGE);
  exit(2);
}

static double number_of(const char *text) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0') fail("not a number", text);
  return value;
}

/* The index of `text` in the list, which ends with NULL. */
static int choice_of(const char *text, const char *const *choices) {
  for (int i = 0; choices[i] != NULL; i++)
    if (strcmp(text, choices[i]) == 0) return i;
  fail("not one of the choices", text);
  return -1;
}

static void add(const char **list, int *count, const char *text) {
  if (*count == MAX_LIST) fail("too many", text);
  list[(*count)++] = text;
}

static void add_topic(struct options *options, char *text) {
  static const char *const types[] = {"HealthStatus", "Alert", "AlertArray", "ShutdownStatus", "DiagnosticArray", NULL};
  static const char *const names[] = {"health_status", "alerts", "open_alerts", "shutdown_status", "diagnostics", NULL};
  if (options->topic_count == MAX_LIST) fail("too many topics", text);
  if (text[0] != '/') fail("a topic's name begins with a slash", text);
  struct topic *topic = &options->topics[options->topic_count++];
  char *type = strchr(text, '=');
  if (type != NULL) *type++ = '\0';
  topic->ros_name = text;
  topic->message = type != NULL ? choice_of(type, types) : choice_of(strrchr(text, '/') + 1, names);
  snprintf(topic->dds_name, sizeof topic->dds_name, "rt%s", text);
}

static char *contents_of(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail("cannot read", path);
  fseek(file, 0, SEEK_END);
  size_t length = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, length + 1);
  if (text == NULL || fread(text, 1, length, file) != length) fail("cannot read", path);
  fclose(file);
  return text;
}

static void add_setting(struct options *options, char *text, int from_file) {
  char *value = strchr(text, '=');
  if (value == NULL) fail("FIELD= is missing", text);
  if (options->setting_count == MAX_LIST) fail("too many settings", text);
  *value++ = '\0';
  options->settings[options->setting_count++] = (struct setting){text, from_file ? contents_of(value) : value};
}

void read_options(int argc, char **argv, struct options *options) {
  static const char *const modes[] = {"subscribe", "publish", "call", "graph", "discovery", NULL};
  static const char *const reliabilities[] = {"best-effort", "reliable", NULL};
  static const char *const durabilities[] = {"volatile", "transient-local", NULL};
  static const char *const distributions[] = {"humble", "iron", NULL};
  enum {
    DOMAIN, ADDRESS, PEER, NO_MULTICAST, LEASE, MAX_MESSAGE_BYTES, ROS, SECONDS, TOPIC, RELIABILITY, DURABILITY, DEPTH, DEADLINE, LIVELINESS_LEASE, HZ, COUNT, AWAIT_READERS,
    STAY, SEQUENCE, SET, SET_FILE, SERVICE, CLIENTS, REPEAT, INTERVAL, MATCH, REPLY, LISTEN, ANNOUNCE
  };
  static const struct option known[] = {
      {"domain", required_argument, NULL, DOMAIN},
      {"address", required_argument, NULL, ADDRESS},
      {"peer", required_argument, NULL, PEER},
      {"no-multicast", no_argument, NULL, NO_MULTICAST},
      {"lease", required_argument, NULL, LEASE},
      {"max-message-bytes", required_argument, NULL, MAX_MESSAGE_BYTES},
      {"ros", required_argument, NULL, ROS},
      {"seconds", required_argument, NULL, SECONDS},
      {"topic", required_argument, NULL, TOPIC},
      {"reliability", required_argument, NULL, RELIABILITY},
      {"durability", required_argument, NULL, DURABILITY},
      {"depth", required_argument, NULL, DEPTH},
      {"deadline", required_argument, NULL, DEADLINE},
      {"liveliness-lease", required_argument, NULL, LIVELINESS_LEASE},
      {"hz", required_argument, NULL, HZ},
      {"count", required_argument, NULL, COUNT},
      {"await-readers", required_argument, NULL, AWAIT_READERS},
      {"stay", no_argument, NULL, STAY},
      {"sequence", required_argument, NULL, SEQUENCE},
      {"set", required_argument, NULL, SET},
      {"set-file", required_argument, NULL, SET_FILE},
      {"service", required_argument, NULL, SERVICE},
      {"clients", required_argument, NULL, CLIENTS},
      {"repeat", required_argument, NULL, REPEAT},
      {"interval-ms", required_argument, NULL, INTERVAL},
      {"match-seconds", required_argument, NULL, MATCH},
      {"reply-seconds", required_argument, NULL, REPLY},
      {"listen-ms", required_argument, NULL, LISTEN},
      {"announce", required_argument, NULL, ANNOUNCE},
      {NULL, 0, NULL, 0},
  };
  *options = (struct options){
      .multicast = 1, .ros = ROS_IRON, .reliable = 1, .transient_local = 1, .depth = 10, .hertz = 1, .service = "/safe_shutdown",
      .clients = 1, .repeat = 1, .match_seconds = 15, .reply_seconds = 5,
  };
  if (argc < 2) fail("a mode is missing", NULL);
  options->mode = choice_of(argv[1], modes);
  argv++;
  argc--;
  for (int found; (found = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    switch (found) {
      case DOMAIN: options->domain = (unsigned)number_of(optarg); break;
      case ADDRESS: add(options->addresses, &options->address_count, optarg); break;
      case PEER: add(options->peers, &options->peer_count, optarg); break;
      case NO_MULTICAST: options->multicast = 0; break;
      case LEASE: options->lease_seconds = number_of(optarg); break;
      case MAX_MESSAGE_BYTES: options->max_message_bytes = (unsigned)number_of(optarg); break;
      case ROS: options->ros = choice_of(optarg, distributions); break;
      case SECONDS: end_after(number_of(optarg)); break;
      case TOPIC: add_topic(options, optarg); break;
      case RELIABILITY: options->reliable = choice_of(optarg, reliabilities); break;
      case DURABILITY: options->transient_local = choice_of(optarg, durabilities); break;
      case DEPTH: options->depth = (int)number_of(optarg); break;
      case DEADLINE: options->deadline_seconds = number_of(optarg); break;
      case LIVELINESS_LEASE: options->liveliness_lease_seconds = number_of(optarg); break;
      case HZ: options->hertz = number_of(optarg); break;
      case COUNT: options->count = (long)number_of(optarg); break;
      case AWAIT_READERS: options->await_readers = (int)number_of(optarg); break;
      case STAY: options->stay = 1; break;
      case SEQUENCE: options->sequence_field = optarg; break;
      case SET: add_setting(options, optarg, 0); break;
      case SET_FILE: add_setting(options, optarg, 1); break;
      case SERVICE: options->service = optarg; break;
      case CLIENTS: options->clients = (int)number_of(optarg); break;
      case REPEAT: options->repeat = (int)number_of(optarg); break;
      case INTERVAL: options->interval_ms = number_of(optarg); break;
      case MATCH: options->match_seconds = number_of(optarg); break;
      case REPLY: options->reply_seconds = number_of(optarg); break;
      case LISTEN: options->listen_ms = number_of(optarg); break;
      case ANNOUNCE: options->announce = optarg; break;
      default: fail("unknown option", NULL);
    }
  }
  if (optind < argc) fail("unknown argument", argv[optind]);
  if ((options->mode == MODE_SUBSCRIBE || options->mode == MODE_PUBLISH) && options->topic_count == 0) fail("--topic is missing", NULL);
}

const char *setting_of(const struct options *options, const char *field) {
  for (int i = 0; i < options->setting_count; i++)
    if (strcmp(options->settings[i].field, field) == 0) return options->settings[i].text;
  return NULL;
}
