#include "events.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *line;
static size_t used;
static size_t room;

static double ms_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

double wall_ms(void) { return ms_of(CLOCK_REALTIME); }

double steady_ms(void) { return ms_of(CLOCK_MONOTONIC); }

static void append(const char *bytes, size_t length) {
  if (used + length > room) {
    room = 2 * (used + length);
    line = realloc(line, room);
    if (line == NULL) abort();
  }
  memcpy(line + used, bytes, length);
  used += length;
}

static void append_text(const char *text) { append(text, strlen(text)); }

static void append_quoted(const char *text, size_t length) {
  append("\"", 1);
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)text[i];
    if (byte == '"' || byte == '\\') {
      append("\\", 1);
      append(text + i, 1);
    } else if (byte < 0x20) {
      char escape[8];
      snprintf(escape, sizeof escape, "\\u%04x", byte);
      append_text(escape);
    } else {
      append(text + i, 1);
    }
  }
  append("\"", 1);
}

/* Everything but the first member of an object or array is preceded by a comma. */
static void begin_member(const char *key) {
  char last = line[used - 1];
  if (last != '{' && last != '[') append(",", 1);
  if (key != NULL) {
    append_quoted(key, strlen(key));
    append(":", 1);
  }
}

void event_begin(const char *kind) {
  pthread_mutex_lock(&lock);
  used = 0;
  append("{", 1);
  event_text("event", kind);
  event_number("wall_ms", wall_ms());
}

void event_end(void) {
  append("}\n", 2);
  for (size_t sent = 0; sent < used;) {
    ssize_t written = write(STDOUT_FILENO, line + sent, used - sent);
    if (written < 0) _exit(1);
    sent += (size_t)written;
  }
  pthread_mutex_unlock(&lock);
}

void event_text(const char *key, const char *text) {
  if (text == NULL) event_null(key);
  else event_text_of(key, text, strlen(text));
}

void event_text_of(const char *key, const char *text, size_t length) {
  begin_member(key);
  append_quoted(text, length);
}

void event_number(const char *key, double value) {
  if (isnan(value)) event_text(key, "NaN");
  else if (isinf(value)) event_text(key, value > 0 ? "Infinity" : "-Infinity");
  else {
    char digits[40];
    snprintf(digits, sizeof digits, "%.17g", value);
    begin_member(key);
    append_text(digits);
  }
}

void event_integer(const char *key, int64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%lld", (long long)value);
  begin_member(key);
  append_text(digits);
}

void event_flag(const char *key, int value) {
  begin_member(key);
  append_text(value ? "true" : "false");
}

void event_bytes(const char *key, const void *bytes, size_t length) {
  begin_member(key);
  append("\"", 1);
  for (size_t i = 0; i < length; i++) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", ((const unsigned char *)bytes)[i]);
    append(digits, 2);
  }
  append("\"", 1);
}

void event_null(const char *key) {
  begin_member(key);
  append_text("null");
}

void event_open(const char *key, char opening) {
  begin_member(key);
  append(&opening, 1);
}

void event_close(char closing) { append(&closing, 1); }
