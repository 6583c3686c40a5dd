#include <algorithm>
#include <atomic>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "messages.hpp"
#include "peer.hpp"

namespace peer {

namespace {

class Publication : public dds::DataWriterListener {
 public:
  explicit Publication(const topic &topic) : topic_(topic) {}

  void on_publication_matched(dds::DataWriter *, const dds::PublicationMatchedStatus &status) override {
    event_begin(status.current_count_change > 0 ? "matched" : "unmatched");
    event_text("topic", topic_.ros_name);
    event_integer("current", status.current_count);
    event_guid("peer", status.last_subscription_handle);
    event_end();
    readers_ = status.current_count;
  }

  void on_offered_incompatible_qos(dds::DataWriter *, const dds::OfferedIncompatibleQosStatus &status) override {
    event_begin("incompatible");
    event_text("topic", topic_.ros_name);
    event_integer("policy", status.last_policy_id);
    event_end();
  }

  int readers() const { return readers_; }

 private:
  const topic &topic_;
  std::atomic<int> readers_{0};
};

template <typename PubSubType>
void publish_as(const options &options) {
  const topic &topic = options.topics[0];
  Publication publication(topic);
  Participant participant(options);
  const auto qos = writer_qos(options.ros, MESSAGE_HASHES[topic.message], options.reliable, options.transient_local, options.depth);
  auto *writer = participant.writer(participant.topic(topic.dds_name, dds::TypeSupport(new PubSubType())), qos, &publication);
  event_begin("writer");
  event_text("topic", topic.ros_name);
  event_guid("guid", writer->guid());
  event_end();
  while (publication.readers() < options.await_readers && !must_end(5)) continue;
  const double start = steady_ms();
  for (long number = 1; options.count == 0 || number <= options.count; number++) {
    const double due = options.hertz > 0 ? start + (number - 1) * 1e3 / options.hertz : 0;
    if (must_end(std::max(0.0, due - steady_ms()))) break;
    typename PubSubType::type message;
    each_field(message, FillField{options, number});
    if (!writer->write(&message)) fail("writing");
    event_begin("written");
    event_text("topic", topic.ros_name);
    event_integer("number", number);
    event_end();
  }
  if (options.stay) {
    while (!must_end(60e3)) continue;
  }
  writer->wait_for_acknowledgments(eprosima::fastrtps::Duration_t(5, 0));
}

}  // namespace

void publish(const options &options) {
  switch (options.topics[0].message) {
    case HEALTH_STATUS: publish_as<msg::HealthStatus_PubSubType>(options); break;
    case ALERT: publish_as<msg::Alert_PubSubType>(options); break;
    case SHUTDOWN_STATUS: publish_as<msg::ShutdownStatus_PubSubType>(options); break;
    default: fail("publishing this type");
  }
}

}  // namespace peer
