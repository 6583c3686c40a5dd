/* The messages by field, so that one code prints and fills all of them. */
#ifndef MESSAGES_H
#define MESSAGES_H

#include <stddef.h>

#include "../common/options.h"
#include "dds/dds.h"

enum kind { NUMBER, TEXT, FLAG };

struct field {
  const char *name;
  enum kind kind;
  size_t offset;
};

struct layout {
  const dds_topic_descriptor_t *descriptor;
  /* Ends with a NULL name; NULL: not flat, only print_message() knows it. */
  const struct field *fields;
};

extern const struct layout LAYOUTS[MESSAGES];
extern const struct field REQUEST_FIELDS[];

/* The members of the message, into an object that is open. */
void print_message(enum message message, const void *sample);

/* Fills fields from the command line; `number`, unless 0, goes into the sequence field. Texts are to be freed with release_fields(). */
void fill_fields(const struct field *fields, void *sample, const struct options *options, long number);
void release_fields(const struct field *fields, void *sample);

#endif
