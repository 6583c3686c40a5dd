/* A lossy link: forwards Ethernet frames between two interfaces of its network namespace, and loses, duplicates or delays some.
 *
 *   lossy-link INTERFACE INTERFACE [SEED]
 *
 * Commands on standard input, one per line; the response to each is one line of counters in JSON:
 *   set loss PERCENT        frames that are lost
 *   set duplicate PERCENT   frames that arrive twice
 *   set reorder PERCENT     frames that are held, so that later ones overtake them
 *   set hold MS             for how long
 *   pause, resume           drop all frames, forward them again
 *   stats
 * It ends at the end of its input. ARP, IGMP and ICMPv6, which keep the link itself working, always pass, except in a pause.
 *
 * Each direction has its own random generator and draws the same number of values for every frame: the nth frame of a direction is
 * treated the same in every run with the same seed.
 *
 * PACKET_VNET_HDR preserves the offloading state of a frame (checksum not computed yet, segments not split yet). A veth pair has no
 * hardware that completes it; without the header the receiver would see wrong checksums.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FRAME_BYTES = 1 << 17, MOST_HELD = 4096, SOCKET_BYTES = 16 << 20, BATCH = 64 };

struct direction {
  int from, to;
  uint64_t random;
  uint64_t received, forwarded, lost, duplicated, reordered, paused, failed, missed;
};

struct held {
  double due_ms;
  struct direction *direction;
  size_t length;
  unsigned char *frame; /* NULL: unused */
};

static struct direction directions[2];
static struct held held[MOST_HELD];
static int held_count;
static double loss, duplicate, reorder, hold_ms = 20;
static int paused;

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

/* SplitMix64 (Steele, Lea, Flood 2014); percent in [0, 100). */
static double draw_percent(struct direction *direction) {
  uint64_t z = direction->random += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * (100.0 / 9007199254740992.0);
}

static int open_interface(const char *name) {
  unsigned index = if_nametoindex(name);
  if (index == 0) fail(name);
  int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("packet socket");
  const int on = 1, bytes = SOCKET_BYTES;
  if (setsockopt(descriptor, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) < 0) fail("PACKET_VNET_HDR");
  if (setsockopt(descriptor, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) < 0) fail("PACKET_IGNORE_OUTGOING");
  if (setsockopt(descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0) fail("SO_RCVBUFFORCE");
  const struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
  if (setsockopt(descriptor, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) < 0) fail("promiscuous mode");
  const struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
  if (bind(descriptor, (const struct sockaddr *)&address, sizeof address) < 0) fail("bind");
  return descriptor;
}

static void forward(struct direction *direction, const unsigned char *frame, size_t length) {
  if (send(direction->to, frame, length, 0) < 0) direction->failed++;
  else direction->forwarded++;
}

static void hold(struct direction *direction, const unsigned char *frame, size_t length) {
  for (int i = 0; i < MOST_HELD; i++) {
    if (held[i].frame != NULL) continue;
    held[i] = (struct held){now_ms() + hold_ms, direction, length, malloc(length)};
    if (held[i].frame == NULL) fail("malloc");
    memcpy(held[i].frame, frame, length);
    held_count++;
    direction->reordered++;
    return;
  }
  forward(direction, frame, length);
}

/* Sends the held frames that are due; returns the time until the next one is due, or -1. */
static int release_held(void) {
  double now = now_ms(), next = -1;
  for (int i = 0, seen = 0, count = held_count; seen < count; i++) {
    if (held[i].frame == NULL) continue;
    seen++;
    if (held[i].due_ms <= now) {
      forward(held[i].direction, held[i].frame, held[i].length);
      free(held[i].frame);
      held[i].frame = NULL;
      held_count--;
    } else if (next < 0 || held[i].due_ms < next) {
      next = held[i].due_ms;
    }
  }
  return next < 0 ? -1 : (int)(next - now) + 1;
}

/* ARP, IGMP and ICMPv6, which in multicast listener reports follows a hop-by-hop header. */
static int keeps_link(const unsigned char *frame, size_t length) {
  const unsigned char *ethernet = frame + sizeof(struct virtio_net_hdr);
  const unsigned char *ip = ethernet + ETH_HLEN;
  int type = ethernet[12] << 8 | ethernet[13];
  if (type == ETH_P_ARP) return 1;
  if (length < sizeof(struct virtio_net_hdr) + ETH_HLEN + 20) return 0;
  if (type == ETH_P_IP) return ip[9] == IPPROTO_IGMP;
  return type == ETH_P_IPV6 && (ip[6] == IPPROTO_ICMPV6 || ip[6] == IPPROTO_HOPOPTS);
}

static void judge(struct direction *direction, const unsigned char *frame, size_t length) {
  direction->received++;
  if (paused) {
    direction->paused++;
    return;
  }
  if (keeps_link(frame, length)) {
    forward(direction, frame, length);
    return;
  }
  double fates[3];
  for (int i = 0; i < 3; i++) fates[i] = draw_percent(direction);
  if (fates[0] < loss) {
    direction->lost++;
    return;
  }
  if (fates[1] < duplicate) {
    direction->duplicated++;
    forward(direction, frame, length);
  }
  if (fates[2] < reorder) hold(direction, frame, length);
  else forward(direction, frame, length);
}

static void receive(struct direction *direction) {
  static unsigned char frame[FRAME_BYTES];
  for (int i = 0; i < BATCH; i++) {
    ssize_t length = recv(direction->from, frame, sizeof frame, MSG_TRUNC);
    if (length < 0) return; /* no frame left, or the interface is down */
    if ((size_t)length > sizeof frame || (size_t)length < sizeof(struct virtio_net_hdr) + ETH_HLEN) direction->failed++;
    else judge(direction, frame, (size_t)length);
  }
}

static void print_counters(void) {
  printf("{\"paused\":%s", paused ? "true" : "false");
  for (int i = 0; i < 2; i++) {
    struct direction *d = &directions[i];
    struct tpacket_stats statistics = {0};
    socklen_t size = sizeof statistics;
    if (getsockopt(d->from, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0) d->missed += statistics.tp_drops;
    printf(",\"%s\":{\"received\":%llu,\"forwarded\":%llu,\"lost\":%llu,\"duplicated\":%llu,\"reordered\":%llu,\"paused\":%llu,"
           "\"failed\":%llu,\"missed\":%llu}",
           i == 0 ? "forth" : "back", (unsigned long long)d->received, (unsigned long long)d->forwarded, (unsigned long long)d->lost,
           (unsigned long long)d->duplicated, (unsigned long long)d->reordered, (unsigned long long)d->paused, (unsigned long long)d->failed,
           (unsigned long long)d->missed);
  }
  printf("}\n");
  fflush(stdout);
}

static void execute_command(const char *command) {
  double value;
  if (sscanf(command, "set loss %lf", &value) == 1) loss = value;
  else if (sscanf(command, "set duplicate %lf", &value) == 1) duplicate = value;
  else if (sscanf(command, "set reorder %lf", &value) == 1) reorder = value;
  else if (sscanf(command, "set hold %lf", &value) == 1) hold_ms = value;
  else if (strcmp(command, "pause") == 0) paused = 1;
  else if (strcmp(command, "resume") == 0) paused = 0;
  else if (strcmp(command, "stats") != 0) {
    printf("{\"error\":\"unknown command\"}\n");
    fflush(stdout);
    return;
  }
  print_counters();
}

/* Returns false at the end of the input. */
static int read_commands(void) {
  static char buffer[4096];
  static size_t used;
  ssize_t length = read(STDIN_FILENO, buffer + used, sizeof buffer - 1 - used);
  if (length <= 0) return 0;
  used += (size_t)length;
  buffer[used] = '\0';
  char *line = buffer;
  for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = '\0';
    execute_command(line);
  }
  used -= (size_t)(line - buffer);
  memmove(buffer, line, used);
  return used < sizeof buffer - 1;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: lossy-link INTERFACE INTERFACE [SEED]\n");
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
  int first = open_interface(argv[1]), second = open_interface(argv[2]);
  directions[0] = (struct direction){.from = first, .to = second, .random = seed};
  directions[1] = (struct direction){.from = second, .to = first, .random = ~seed};
  print_counters();
  for (;;) {
    struct pollfd ready[3] = {{first, POLLIN, 0}, {second, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(ready, 3, release_held()) < 0 && errno != EINTR) fail("poll");
    /* Pending socket errors must be read; otherwise poll would always return immediately. */
    if (ready[0].revents) receive(&directions[0]);
    if (ready[1].revents) receive(&directions[1]);
    if (ready[2].revents && !read_commands()) return 0;
  }
}
