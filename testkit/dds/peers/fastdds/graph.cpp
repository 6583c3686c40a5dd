// ros_discovery_info: the nodes of a participant and their endpoints.
#include <algorithm>
#include <string>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "peer.hpp"
#include "ros_typesPubSubTypes.h"

namespace peer {

namespace {

namespace common = rmw_dds_common::msg::dds_;

constexpr char TYPE_NAME[] = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_";

template <typename Gids>
void print_gids(const char *key, Gids &gids) {
  event_open(key, '[');
  for (auto &gid : gids) event_bytes(nullptr, gid.data().data(), gid.data().size());
  event_close(']');
}

template <typename Entities>
class GraphReader : public dds::DataReaderListener {
 public:
  void on_data_available(dds::DataReader *reader) override {
    Entities entities;
    dds::SampleInfo info;
    while (reader->take_next_sample(&entities, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data || info.sample_identity.writer_guid().guidPrefix == reader->guid().guidPrefix) continue;
      event_begin("entities");
      event_guid("writer", info.sample_identity.writer_guid());
      event_bytes("gid", entities.gid().data().data(), entities.gid().data().size());
      event_open("nodes", '[');
      for (auto &node : entities.node_entities_info_seq()) {
        event_open(nullptr, '{');
        event_text("namespace", node.node_namespace().c_str());
        event_text("name", node.node_name().c_str());
        print_gids("readers", node.reader_gid_seq());
        print_gids("writers", node.writer_gid_seq());
        event_close('}');
      }
      event_close(']');
      event_end();
    }
  }
};

// Announces one node without endpoints for this participant.
template <typename Entities, typename Node>
void announce(Participant &participant, dds::Topic *topic, const options &options) {
  auto *writer = participant.writer(topic, writer_qos(options.ros, ENTITIES_HASH, true, true, 1));
  const std::string full = options.announce;
  const size_t slash = full.rfind('/');
  if (slash == std::string::npos) fail("announcing a node whose full name does not begin with a slash");
  Node node;
  node.node_namespace(slash == 0 ? "/" : full.substr(0, slash));
  node.node_name(full.substr(slash + 1));
  Entities entities;
  const rtps::GUID_t &guid = participant.entity().guid();
  auto at = std::copy(std::begin(guid.guidPrefix.value), std::end(guid.guidPrefix.value), entities.gid().data().begin());
  std::copy(std::begin(guid.entityId.value), std::end(guid.entityId.value), at);
  entities.node_entities_info_seq().push_back(node);
  if (!writer->write(&entities)) fail("writing");
}

template <typename PubSubType, typename Node>
void graph_as(const options &options) {
  GraphReader<typename PubSubType::type> listener;
  Participant participant(options);
  auto *topic = participant.topic("ros_discovery_info", dds::TypeSupport(new PubSubType()), TYPE_NAME);
  if (options.announce != nullptr) announce<typename PubSubType::type, Node>(participant, topic, options);
  auto *reader = participant.reader(topic, reader_qos(options.ros, ENTITIES_HASH, true, true, 0), &listener);
  event_begin("reader");
  event_guid("guid", reader->guid());
  event_end();
  while (!must_end(60e3)) continue;
}

}  // namespace

void graph(const options &options) {
  if (options.ros == ROS_HUMBLE) graph_as<common::ParticipantEntitiesInfo24_PubSubType, common::NodeEntitiesInfo24_>(options);
  else graph_as<common::ParticipantEntitiesInfo_PubSubType, common::NodeEntitiesInfo_>(options);
}

}  // namespace peer
