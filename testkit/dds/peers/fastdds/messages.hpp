// Descriptions of the messages by field, so that the same code prints and fills all of them.
#pragma once

#include <cstdlib>
#include <string>

#include "../common/events.h"
#include "../common/options.h"
#include "ros_typesPubSubTypes.h"

namespace peer {

namespace msg = edge_health_interfaces::msg::dds_;
namespace srv = edge_health_interfaces::srv::dds_;
using diagnostic_msgs::msg::dds_::DiagnosticArray_;

template <typename Field>
void each_field(msg::HealthStatus_ &message, Field &&field) {
  field("cpu_percent", message.cpu_percent());
  field("memory_percent", message.memory_percent());
  field("disk_percent", message.disk_percent());
  field("temperature", message.temperature());
  field("status", message.status());
  field("node_name", message.node_name());
  field("timestamp", message.timestamp());
}

template <typename Field>
void each_field(msg::Alert_ &message, Field &&field) {
  field("alert_id", message.alert_id());
  field("severity", message.severity());
  field("metric", message.metric());
  field("value", message.value());
  field("threshold", message.threshold());
  field("timestamp", message.timestamp());
  field("resolved", message.resolved());
}

template <typename Field>
void each_field(msg::ShutdownStatus_ &message, Field &&field) {
  field("request_id", message.request_id());
  field("state", message.state());
  field("step", message.step());
  field("reason", message.reason());
  field("requested_by", message.requested_by());
  field("action", message.action());
  field("seconds_left", message.seconds_left());
  field("message", message.message());
  field("timestamp", message.timestamp());
}

template <typename Field>
void each_field(srv::SafeShutdown_Request_ &request, Field &&field) {
  field("reason", request.reason());
  field("requested_by", request.requested_by());
  field("timeout", request.timeout());
}

template <typename Field>
void each_field(srv::SafeShutdown_Response_ &response, Field &&field) {
  field("success", response.success());
  field("message", response.message());
}

struct PrintField {
  void operator()(const char *name, double value) const { event_number(name, value); }
  void operator()(const char *name, const std::string &value) const { event_text_of(name, value.data(), value.size()); }
  void operator()(const char *name, bool value) const { event_flag(name, value); }
};

// From the command line; `number`, unless 0, goes into the sequence field.
struct FillField {
  const options &given;
  long number;

  bool counts(const char *name) const { return number != 0 && given.sequence_field != nullptr && std::string(name) == given.sequence_field; }

  void operator()(const char *name, double &value) const {
    const char *text = setting_of(&given, name);
    value = counts(name) ? static_cast<double>(number) : text == nullptr ? 0 : std::strtod(text, nullptr);
  }
  void operator()(const char *name, std::string &value) const {
    const char *text = setting_of(&given, name);
    value = text == nullptr ? "" : text;
    if (counts(name)) value += std::to_string(number);
  }
  void operator()(const char *name, bool &value) const {
    const char *text = setting_of(&given, name);
    value = text != nullptr && std::string(text) == "true";
  }
};

// Prints the members of the message into the open JSON object.
template <typename Message>
void print_message(Message &message) {
  each_field(message, PrintField{});
}

void print_message(msg::AlertArray_ &array);
void print_message(DiagnosticArray_ &array);

}  // namespace peer
