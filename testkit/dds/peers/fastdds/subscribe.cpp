#include <list>
#include <memory>
#include <vector>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "messages.hpp"
#include "peer.hpp"

namespace peer {

using diagnostic_msgs::msg::dds_::DiagnosticStatus_;

static void print_stamp(builtin_interfaces::msg::dds_::Time_ &stamp) {
  event_open("stamp", '{');
  event_integer("sec", stamp.sec());
  event_integer("nanosec", stamp.nanosec());
  event_close('}');
}

static void print_status(DiagnosticStatus_ &status) {
  event_open(nullptr, '{');
  event_integer("level", status.level());
  event_text("name", status.name().c_str());
  event_text("message", status.message().c_str());
  event_text("hardware_id", status.hardware_id().c_str());
  event_open("values", '[');
  for (auto &value : status.values()) {
    event_open(nullptr, '{');
    event_text("key", value.key().c_str());
    event_text("value", value.value().c_str());
    event_close('}');
  }
  event_close(']');
  event_close('}');
}

void print_message(msg::AlertArray_ &array) {
  print_stamp(array.stamp());
  event_text("node_name", array.node_name().c_str());
  event_open("alerts", '[');
  for (auto &alert : array.alerts()) {
    event_open(nullptr, '{');
    print_message(alert);
    event_close('}');
  }
  event_close(']');
}

void print_message(DiagnosticArray_ &array) {
  event_open("header", '{');
  print_stamp(array.header().stamp());
  event_text("frame_id", array.header().frame_id().c_str());
  event_close('}');
  event_open("status", '[');
  for (auto &status : array.status()) print_status(status);
  event_close(']');
}

namespace {

template <typename Message>
class Subscription : public dds::DataReaderListener {
 public:
  explicit Subscription(const topic &topic) : topic_(topic) {}

  void on_data_available(dds::DataReader *reader) override {
    Message message;
    dds::SampleInfo info;
    while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK) {
      const double now = wall_ms();
      event_begin(info.valid_data ? "sample" : "instance");
      event_text("topic", topic_.ros_name);
      event_guid("writer", info.sample_identity.writer_guid());
      if (info.valid_data) {
        const double source = info.source_timestamp.to_ns() / 1e6;
        event_number("source_ms", source);
        event_number("latency_ms", now - source);
        event_integer("sequence_number", static_cast<int64_t>(info.sample_identity.sequence_number().to64long()));
        event_open("data", '{');
        print_message(message);
        event_close('}');
      } else {
        event_text("state", info.instance_state == dds::NOT_ALIVE_DISPOSED_INSTANCE_STATE ? "disposed" : "no_writers");
      }
      event_end();
    }
  }

  void on_subscription_matched(dds::DataReader *, const dds::SubscriptionMatchedStatus &status) override {
    event_begin(status.current_count_change > 0 ? "matched" : "unmatched");
    event_text("topic", topic_.ros_name);
    event_integer("current", status.current_count);
    event_guid("peer", status.last_publication_handle);
    event_end();
  }

  void on_sample_lost(dds::DataReader *, const dds::SampleLostStatus &status) override {
    event_begin("lost");
    event_text("topic", topic_.ros_name);
    event_integer("total", status.total_count);
    event_end();
  }

  void on_requested_incompatible_qos(dds::DataReader *, const dds::RequestedIncompatibleQosStatus &status) override {
    event_begin("incompatible");
    event_text("topic", topic_.ros_name);
    event_integer("policy", status.last_policy_id);
    event_end();
  }

  void on_requested_deadline_missed(dds::DataReader *, const eprosima::fastrtps::RequestedDeadlineMissedStatus &status) override {
    event_begin("deadline_missed");
    event_text("topic", topic_.ros_name);
    event_integer("total", status.total_count);
    event_end();
  }

  void on_liveliness_changed(dds::DataReader *, const eprosima::fastrtps::LivelinessChangedStatus &status) override {
    event_begin("liveliness");
    event_text("topic", topic_.ros_name);
    event_integer("alive", status.alive_count);
    event_integer("not_alive", status.not_alive_count);
    event_end();
  }

 private:
  const topic &topic_;
};

struct Subscribed {
  dds::TypeSupport type;
  std::unique_ptr<dds::DataReaderListener> listener;
};

template <typename PubSubType>
Subscribed subscribed(const topic &topic) {
  return {dds::TypeSupport(new PubSubType()), std::make_unique<Subscription<typename PubSubType::type>>(topic)};
}

Subscribed subscribed_to(const topic &topic) {
  switch (topic.message) {
    case HEALTH_STATUS: return subscribed<msg::HealthStatus_PubSubType>(topic);
    case ALERT: return subscribed<msg::Alert_PubSubType>(topic);
    case ALERT_ARRAY: return subscribed<msg::AlertArray_PubSubType>(topic);
    case SHUTDOWN_STATUS: return subscribed<msg::ShutdownStatus_PubSubType>(topic);
    default: return subscribed<diagnostic_msgs::msg::dds_::DiagnosticArray_PubSubType>(topic);
  }
}

}  // namespace

void subscribe(const options &options) {
  std::vector<Subscribed> all;
  Participant participant(options);
  for (int i = 0; i < options.topic_count; i++) {
    const topic &topic = options.topics[i];
    all.push_back(subscribed_to(topic));
    auto qos = reader_qos(options.ros, MESSAGE_HASHES[topic.message], options.reliable, options.transient_local, options.depth);
    const auto duration = [](double seconds) { return eprosima::fastrtps::Duration_t(static_cast<long double>(seconds)); };
    if (options.deadline_seconds > 0) qos.deadline().period = duration(options.deadline_seconds);
    if (options.liveliness_lease_seconds > 0) qos.liveliness().lease_duration = duration(options.liveliness_lease_seconds);
    auto *reader = participant.reader(participant.topic(topic.dds_name, all.back().type), qos, all.back().listener.get());
    event_begin("reader");
    event_text("topic", topic.ros_name);
    event_guid("guid", reader->guid());
    event_end();
  }
  while (!must_end(60e3)) continue;
}

}  // namespace peer
