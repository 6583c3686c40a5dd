/* Descriptions of the messages by field, so that the same code prints and fills all of them. */
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
  /* Ends with a NULL name; NULL: not flat, printed only by print_message(). */
  const struct field *fields;
};

extern const struct layout LAYOUTS[MESSAGES];
extern const struct field REQUEST_FIELDS[];

/* Prints the members of the message into the open JSON object. */
void print_message(enum message message, const void *sample);

/* Fills fields from the command line; `number`, unless 0, goes into the sequence field. Free the texts with release_fields(). */
void fill_fields(const struct field *fields, void *sample, const struct options *options, long number);
void release_fields(const struct field *fields, void *sample);

#endif
