/* Events of a peer: one JSON object per line on standard output, each flushed immediately. */
#ifndef EVENTS_H
#define EVENTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens {"event": kind, "wall_ms": …}. Thread-safe: the lock is held until event_end(). */
void event_begin(const char *kind);
void event_end(void);

/* In arrays the key is NULL. Text must be UTF-8 and is not converted. */
void event_text(const char *key, const char *text);
void event_text_of(const char *key, const char *text, size_t length);
/* Printed without loss of precision. Values that JSON cannot represent are strings: "NaN", "Infinity", "-Infinity". */
void event_number(const char *key, double value);
void event_integer(const char *key, int64_t value);
void event_flag(const char *key, int value);
/* Lower-case hexadecimal digits. */
void event_bytes(const char *key, const void *bytes, size_t length);
void event_null(const char *key);
/* opening is '{' or '['. */
void event_open(const char *key, char opening);
void event_close(char closing);

/* Milliseconds: of the wall clock since 1970, and of the monotonic clock. */
double wall_ms(void);
double steady_ms(void);

#ifdef __cplusplus
}
#endif
#endif
