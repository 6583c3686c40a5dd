// The peer on Fast DDS.
#pragma once

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <string>

#include "../common/options.h"

namespace peer {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

// The destructor deletes the participant and its entities, which announces the leave; a killed peer does not announce it.
class Participant {
 public:
  explicit Participant(const options &options, dds::DomainParticipantListener *listener = nullptr);
  ~Participant();
  Participant(const Participant &) = delete;
  Participant &operator=(const Participant &) = delete;

  dds::DomainParticipant &entity() { return *entity_; }

  // Stops the callbacks of the listeners before their data is destroyed; called by the destructor too.
  void close();

  dds::Topic *topic(const std::string &name, dds::TypeSupport type, const std::string &type_name = "");
  dds::DataReader *reader(dds::Topic *topic, const dds::DataReaderQos &qos, dds::DataReaderListener *listener = nullptr);
  dds::DataWriter *writer(dds::Topic *topic, const dds::DataWriterQos &qos, dds::DataWriterListener *listener = nullptr);

 private:
  dds::DomainParticipant *entity_;
  dds::Publisher *publisher_;
  dds::Subscriber *subscriber_;
};

// As rmw_fastrtps sets them; `hash` is announced where ROS 2 does so. A depth of 0 means KEEP_ALL.
dds::DataReaderQos reader_qos(enum ros ros, const char *hash, bool reliable, bool transient_local, int depth);
dds::DataWriterQos writer_qos(enum ros ros, const char *hash, bool reliable, bool transient_local, int depth);

[[noreturn]] void fail(const std::string &what);

void event_guid(const char *key, const rtps::GUID_t &guid);
// The instance handle of a match is its guid.
void event_guid(const char *key, const rtps::InstanceHandle_t &handle);

void subscribe(const options &options);
void publish(const options &options);
// Whether every request was answered.
bool call(const options &options);
void graph(const options &options);
void discovery(const options &options);

}  // namespace peer
