#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/log/StdoutErrConsumer.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "peer.hpp"

namespace peer {

using dds::DomainParticipantFactory;

void fail(const std::string &what) {
  std::fprintf(stderr, "%s failed\n", what.c_str());
  std::exit(1);
}

template <typename Qos>
static void set_user_data(Qos &qos, const std::string &text) {
  qos.user_data().setValue(std::vector<rtps::octet>(text.begin(), text.end()));
}

static dds::DomainParticipantQos participant_qos(const options &options) {
  dds::DomainParticipantQos qos = dds::PARTICIPANT_QOS_DEFAULT;
  set_user_data(qos, PARTICIPANT_USER_DATA);
  // Without shared memory, so that the tests use the network.
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  for (int i = 0; i < options.address_count; i++) udp->interfaceWhiteList.push_back(options.addresses[i]);
  if (options.max_message_bytes > 0) udp->maxMessageSize = options.max_message_bytes;
  qos.transport().use_builtin_transports = false;
  qos.transport().user_transports.push_back(udp);
  auto &builtin = qos.wire_protocol().builtin;
  if (options.lease_seconds > 0) {
    builtin.discovery_config.leaseDuration = eprosima::fastrtps::Duration_t(static_cast<long double>(options.lease_seconds));
    builtin.discovery_config.leaseDuration_announcementperiod =
        eprosima::fastrtps::Duration_t(static_cast<long double>(options.lease_seconds / 6));
  }
  for (int i = 0; i < options.peer_count; i++) {
    // Without a port: Fast DDS uses the ports of the first participants of the domain on that host.
    rtps::Locator_t locator;
    rtps::IPLocator::setIPv4(locator, options.peers[i]);
    builtin.initialPeersList.push_back(locator);
  }
  if (options.multicast) {
    // A list of initial peers would otherwise replace the multicast group.
    if (options.peer_count > 0) {
      rtps::Locator_t group;
      rtps::IPLocator::setIPv4(group, "239.255.0.1");
      builtin.initialPeersList.push_back(group);
    }
  } else {
    // Listening only by unicast needs an explicit locator; without an address it covers every interface.
    rtps::Locator_t own;
    if (options.address_count > 0) rtps::IPLocator::setIPv4(own, options.addresses[0]);
    builtin.metatrafficUnicastLocatorList.push_back(own);
  }
  return qos;
}

Participant::Participant(const options &options, dds::DomainParticipantListener *listener) {
  entity_ = DomainParticipantFactory::get_instance()->create_participant(options.domain, participant_qos(options), listener,
                                                                         dds::StatusMask::none());
  if (entity_ == nullptr) fail("creating the participant");
  publisher_ = entity_->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
  subscriber_ = entity_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
}

void Participant::close() {
  if (entity_ == nullptr) return;
  entity_->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(entity_);
  entity_ = nullptr;
}

Participant::~Participant() { close(); }

dds::Topic *Participant::topic(const std::string &name, dds::TypeSupport type, const std::string &type_name) {
  // ROS 2 does not send type objects.
  type->auto_fill_type_information(false);
  type->auto_fill_type_object(false);
  const std::string registered = type_name.empty() ? type.get_type_name() : type_name;
  type.register_type(entity_, registered);
  dds::Topic *topic = entity_->create_topic(name, registered, dds::TOPIC_QOS_DEFAULT);
  if (topic == nullptr) fail("creating the topic " + name);
  return topic;
}

dds::DataReader *Participant::reader(dds::Topic *topic, const dds::DataReaderQos &qos, dds::DataReaderListener *listener) {
  dds::DataReader *reader = subscriber_->create_datareader(topic, qos, listener);
  if (reader == nullptr) fail("creating the reader of " + topic->get_name());
  return reader;
}

dds::DataWriter *Participant::writer(dds::Topic *topic, const dds::DataWriterQos &qos, dds::DataWriterListener *listener) {
  dds::DataWriter *writer = publisher_->create_datawriter(topic, qos, listener);
  if (writer == nullptr) fail("creating the writer of " + topic->get_name());
  return writer;
}

template <typename Qos>
static void fill_qos(Qos &qos, enum ros ros, const char *hash, bool reliable, bool transient_local, int depth) {
  char user_data[256];
  endpoint_user_data(user_data, sizeof user_data, ros, "", hash);
  set_user_data(qos, user_data);
  qos.reliability().kind = reliable ? dds::RELIABLE_RELIABILITY_QOS : dds::BEST_EFFORT_RELIABILITY_QOS;
  qos.durability().kind = transient_local ? dds::TRANSIENT_LOCAL_DURABILITY_QOS : dds::VOLATILE_DURABILITY_QOS;
  qos.history().kind = depth > 0 ? dds::KEEP_LAST_HISTORY_QOS : dds::KEEP_ALL_HISTORY_QOS;
  if (depth > 0) qos.history().depth = depth;
  // Strings have no bound, so the buffers must grow with the samples.
  qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  qos.data_sharing().off();
}

dds::DataReaderQos reader_qos(enum ros ros, const char *hash, bool reliable, bool transient_local, int depth) {
  dds::DataReaderQos qos = dds::DATAREADER_QOS_DEFAULT;
  fill_qos(qos, ros, hash, reliable, transient_local, depth);
  return qos;
}

dds::DataWriterQos writer_qos(enum ros ros, const char *hash, bool reliable, bool transient_local, int depth) {
  dds::DataWriterQos qos = dds::DATAWRITER_QOS_DEFAULT;
  fill_qos(qos, ros, hash, reliable, transient_local, depth);
  qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
  return qos;
}

void event_guid(const char *key, const rtps::GUID_t &guid) {
  unsigned char bytes[16];
  for (int i = 0; i < 12; i++) bytes[i] = guid.guidPrefix.value[i];
  for (int i = 0; i < 4; i++) bytes[12 + i] = guid.entityId.value[i];
  event_bytes(key, bytes, sizeof bytes);
}

// Standard output is reserved for the events.
static void log_to_stderr() {
  auto consumer = std::make_unique<dds::StdoutErrConsumer>();
  consumer->stderr_threshold(dds::Log::Kind::Info);
  dds::Log::ClearConsumers();
  dds::Log::RegisterConsumer(std::move(consumer));
  dds::Log::SetVerbosity(dds::Log::Kind::Warning);
}

void event_guid(const char *key, const rtps::InstanceHandle_t &handle) { event_guid(key, rtps::iHandle2GUID(handle)); }

}  // namespace peer

int main(int argc, char **argv) {
  options options;
  start_process();
  read_options(argc, argv, &options);
  peer::log_to_stderr();
  bool done = true;
  switch (options.mode) {
    case MODE_SUBSCRIBE: peer::subscribe(options); break;
    case MODE_PUBLISH: peer::publish(options); break;
    case MODE_CALL: done = peer::call(options); break;
    case MODE_GRAPH: peer::graph(options); break;
    case MODE_DISCOVERY: peer::discovery(options); break;
  }
  return done ? 0 : 3;
}
