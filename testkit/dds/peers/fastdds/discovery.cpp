// Reports discovery and loss of remote participants and endpoints.
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/rtps/participant/ParticipantDiscoveryInfo.h>
#include <fastdds/rtps/reader/ReaderDiscoveryInfo.h>
#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>

#include <sstream>

#include "../common/events.h"
#include "../common/process.h"
#include "peer.hpp"

namespace peer {

namespace {

void event_user_data(const dds::UserDataQosPolicy &policy) {
  const auto bytes = policy.getValue();
  event_text_of("user_data", reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

void event_locators(const char *key, const rtps::RemoteLocatorList &locators) {
  event_open(key, '[');
  for (const auto *list : {&locators.unicast, &locators.multicast}) {
    for (const auto &locator : *list) {
      std::ostringstream text;
      text << locator;
      event_text(nullptr, text.str().c_str());
    }
  }
  event_close(']');
}

class Listener : public dds::DomainParticipantListener {
 public:
  void on_participant_discovery(dds::DomainParticipant *, rtps::ParticipantDiscoveryInfo &&found) override {
    using Info = rtps::ParticipantDiscoveryInfo;
    const auto &info = found.info;
    const bool gone = found.status == Info::REMOVED_PARTICIPANT || found.status == Info::DROPPED_PARTICIPANT;
    event_begin(gone ? "participant_gone" : "participant");
    event_guid("guid", info.m_guid);
    if (gone) {
      // Only Fast DDS distinguishes an expired lease from an announced leave.
      event_text("how", found.status == Info::DROPPED_PARTICIPANT ? "lease" : "goodbye");
    } else {
      event_flag("changed", found.status == Info::CHANGED_QOS_PARTICIPANT);
      event_bytes("vendor", info.m_VendorId.data(), info.m_VendorId.size());
      event_number("lease_seconds", info.m_leaseDuration.to_ns() / 1e9);
      event_text("name", info.m_participantName.c_str());
      event_user_data(info.m_userData);
      event_locators("metatraffic", info.metatraffic_locators);
      event_locators("default", info.default_locators);
    }
    event_end();
  }

  void on_publisher_discovery(dds::DomainParticipant *, rtps::WriterDiscoveryInfo &&found) override {
    print(found.info, "writer", found.status == rtps::WriterDiscoveryInfo::REMOVED_WRITER);
  }

  void on_subscriber_discovery(dds::DomainParticipant *, rtps::ReaderDiscoveryInfo &&found) override {
    print(found.info, "reader", found.status == rtps::ReaderDiscoveryInfo::REMOVED_READER);
  }

 private:
  template <typename Info>
  static void print(const Info &info, const char *kind, bool gone) {
    event_begin(gone ? "endpoint_gone" : "endpoint");
    event_text("kind", kind);
    event_guid("guid", info.guid());
    if (!gone) {
      event_guid("participant", rtps::GUID_t(info.guid().guidPrefix, rtps::c_EntityId_RTPSParticipant));
      event_text("topic", info.topicName().c_str());
      event_text("type", info.typeName().c_str());
      event_text("reliability", info.m_qos.m_reliability.kind == dds::RELIABLE_RELIABILITY_QOS ? "reliable" : "best-effort");
      event_text("durability", info.m_qos.m_durability.kind == dds::VOLATILE_DURABILITY_QOS ? "volatile" : "transient-local");
      event_user_data(info.m_qos.m_userData);
      event_locators("locators", info.remote_locators());
    }
    event_end();
  }
};

}  // namespace

void discovery(const options &options) {
  Listener listener;
  Participant participant(options, &listener);
  event_begin("reader");
  event_guid("guid", participant.entity().guid());
  event_end();
  while (!must_end(60e3)) continue;
}

}  // namespace peer
