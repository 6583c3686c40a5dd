#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/events.h"
#include "ros_types.h"

typedef edge_health_interfaces_msg_dds__HealthStatus_ HealthStatus;
typedef edge_health_interfaces_msg_dds__Alert_ Alert;
typedef edge_health_interfaces_msg_dds__AlertArray_ AlertArray;
typedef edge_health_interfaces_msg_dds__ShutdownStatus_ ShutdownStatus;
typedef edge_health_interfaces_srv_dds__SafeShutdown_RequestWithHeader_ Request;
typedef builtin_interfaces_msg_dds__Time_ Time;
typedef diagnostic_msgs_msg_dds__DiagnosticArray_ DiagnosticArray;
typedef diagnostic_msgs_msg_dds__DiagnosticStatus_ DiagnosticStatus;

static const struct field HEALTH_STATUS_FIELDS[] = {
    {"cpu_percent", NUMBER, offsetof(HealthStatus, cpu_percent)},
    {"memory_percent", NUMBER, offsetof(HealthStatus, memory_percent)},
    {"disk_percent", NUMBER, offsetof(HealthStatus, disk_percent)},
    {"temperature", NUMBER, offsetof(HealthStatus, temperature)},
    {"status", TEXT, offsetof(HealthStatus, status)},
    {"node_name", TEXT, offsetof(HealthStatus, node_name)},
    {"timestamp", TEXT, offsetof(HealthStatus, timestamp)},
    {NULL, TEXT, 0},
};

static const struct field ALERT_FIELDS[] = {
    {"alert_id", TEXT, offsetof(Alert, alert_id)},
    {"severity", TEXT, offsetof(Alert, severity)},
    {"metric", TEXT, offsetof(Alert, metric)},
    {"value", NUMBER, offsetof(Alert, value)},
    {"threshold", NUMBER, offsetof(Alert, threshold)},
    {"timestamp", TEXT, offsetof(Alert, timestamp)},
    {"resolved", FLAG, offsetof(Alert, resolved)},
    {NULL, TEXT, 0},
};

static const struct field SHUTDOWN_STATUS_FIELDS[] = {
    {"request_id", TEXT, offsetof(ShutdownStatus, request_id)},
    {"state", TEXT, offsetof(ShutdownStatus, state)},
    {"step", TEXT, offsetof(ShutdownStatus, step)},
    {"reason", TEXT, offsetof(ShutdownStatus, reason)},
    {"requested_by", TEXT, offsetof(ShutdownStatus, requested_by)},
    {"action", TEXT, offsetof(ShutdownStatus, action)},
    {"seconds_left", NUMBER, offsetof(ShutdownStatus, seconds_left)},
    {"message", TEXT, offsetof(ShutdownStatus, message)},
    {"timestamp", TEXT, offsetof(ShutdownStatus, timestamp)},
    {NULL, TEXT, 0},
};

const struct field REQUEST_FIELDS[] = {
    {"reason", TEXT, offsetof(Request, reason)},
    {"requested_by", TEXT, offsetof(Request, requested_by)},
    {"timeout", NUMBER, offsetof(Request, timeout)},
    {NULL, TEXT, 0},
};

const struct layout LAYOUTS[MESSAGES] = {
    [HEALTH_STATUS] = {&edge_health_interfaces_msg_dds__HealthStatus__desc, HEALTH_STATUS_FIELDS},
    [ALERT] = {&edge_health_interfaces_msg_dds__Alert__desc, ALERT_FIELDS},
    [ALERT_ARRAY] = {&edge_health_interfaces_msg_dds__AlertArray__desc, NULL},
    [SHUTDOWN_STATUS] = {&edge_health_interfaces_msg_dds__ShutdownStatus__desc, SHUTDOWN_STATUS_FIELDS},
    [DIAGNOSTIC_ARRAY] = {&diagnostic_msgs_msg_dds__DiagnosticArray__desc, NULL},
};

static void print_stamp(const Time *stamp) {
  event_open("stamp", '{');
  event_integer("sec", stamp->sec);
  event_integer("nanosec", stamp->nanosec);
  event_close('}');
}

static void print_diagnostic_status(const DiagnosticStatus *status) {
  event_open(NULL, '{');
  event_integer("level", status->level);
  event_text("name", status->name);
  event_text("message", status->message);
  event_text("hardware_id", status->hardware_id);
  event_open("values", '[');
  for (uint32_t i = 0; i < status->values._length; i++) {
    event_open(NULL, '{');
    event_text("key", status->values._buffer[i].key);
    event_text("value", status->values._buffer[i].value);
    event_close('}');
  }
  event_close(']');
  event_close('}');
}

static void print_diagnostics(const DiagnosticArray *array) {
  event_open("header", '{');
  print_stamp(&array->header.stamp);
  event_text("frame_id", array->header.frame_id);
  event_close('}');
  event_open("status", '[');
  for (uint32_t i = 0; i < array->status._length; i++) print_diagnostic_status(&array->status._buffer[i]);
  event_close(']');
}

static void print_alerts(const AlertArray *array) {
  print_stamp(&array->stamp);
  event_text("node_name", array->node_name);
  event_open("alerts", '[');
  for (uint32_t i = 0; i < array->alerts._length; i++) {
    event_open(NULL, '{');
    print_message(ALERT, &array->alerts._buffer[i]);
    event_close('}');
  }
  event_close(']');
}

void print_message(enum message message, const void *sample) {
  if (message == ALERT_ARRAY) {
    print_alerts(sample);
    return;
  }
  if (message == DIAGNOSTIC_ARRAY) {
    print_diagnostics(sample);
    return;
  }
  for (const struct field *field = LAYOUTS[message].fields; field->name != NULL; field++) {
    const char *at = (const char *)sample + field->offset;
    switch (field->kind) {
      case NUMBER: event_number(field->name, *(const double *)at); break;
      case TEXT: event_text(field->name, *(char *const *)at); break;
      case FLAG: event_flag(field->name, *(const bool *)at); break;
    }
  }
}

void fill_fields(const struct field *fields, void *sample, const struct options *options, long number) {
  for (const struct field *field = fields; field->name != NULL; field++) {
    const char *text = setting_of(options, field->name);
    int counts = number != 0 && options->sequence_field != NULL && strcmp(options->sequence_field, field->name) == 0;
    char digits[24] = "";
    if (counts) snprintf(digits, sizeof digits, "%ld", number);
    char *at = (char *)sample + field->offset;
    switch (field->kind) {
      case NUMBER: *(double *)at = counts ? (double)number : text == NULL ? 0 : strtod(text, NULL); break;
      case TEXT: {
        size_t length = (text == NULL ? 0 : strlen(text)) + strlen(digits);
        char *value = malloc(length + 1);
        if (value == NULL) abort();
        snprintf(value, length + 1, "%s%s", text == NULL ? "" : text, digits);
        *(char **)at = value;
        break;
      }
      case FLAG: *(bool *)at = text != NULL && strcmp(text, "true") == 0; break;
    }
  }
}

void release_fields(const struct field *fields, void *sample) {
  for (const struct field *field = fields; field->name != NULL; field++)
    if (field->kind == TEXT) free(*(char **)((char *)sample + field->offset));
}
