// A service client as rmw_fastrtps makes it: the request's related_sample_identity names the reader that waits for the reply,
// the reply's names that reader and the number of the request.
#include <algorithm>
#include <cstdint>

#include "../common/events.h"
#include "../common/process.h"
#include "../common/ros.h"
#include "messages.hpp"
#include "peer.hpp"

namespace peer {

namespace {

class Client {
 public:
  Client(const options &options, int number) : options_(options), number_(number), participant_(options) {
    const std::string service = options.service;
    auto *requests = participant_.topic("rq" + service + "Request", dds::TypeSupport(new srv::SafeShutdown_Request_PubSubType()));
    auto *replies = participant_.topic("rr" + service + "Reply", dds::TypeSupport(new srv::SafeShutdown_Response_PubSubType()));
    reader_ = participant_.reader(replies, reader_qos(options.ros, RESPONSE_HASH, true, false, 10));
    writer_ = participant_.writer(requests, writer_qos(options.ros, REQUEST_HASH, true, false, 10));
  }

  bool run() {
    if (!await_server()) return false;
    for (int i = 0; i < options_.repeat; i++) {
      if (i > 0) listen(options_.interval_ms, false);
      send_request();
      listen(options_.reply_seconds * 1e3, true);
      if (answers_ > 0) continue;
      event_begin("timeout");
      event_integer("client", number_);
      event_integer("request", sequence_number_);
      event_end();
      return false;
    }
    listen(options_.listen_ms, false);
    return true;
  }

 private:
  bool await_server() {
    const double start = steady_ms();
    bool available = false;
    do {
      dds::PublicationMatchedStatus requests;
      dds::SubscriptionMatchedStatus replies;
      writer_->get_publication_matched_status(requests);
      reader_->get_subscription_matched_status(replies);
      available = requests.current_count > 0 && replies.current_count > 0;
    } while (!available && steady_ms() - start < options_.match_seconds * 1e3 && !must_end(2));
    event_begin(available ? "service_matched" : "service_missing");
    event_integer("client", number_);
    event_number("match_ms", steady_ms() - start);
    event_guid("guid", reader_->guid());
    event_end();
    return available;
  }

  void send_request() {
    srv::SafeShutdown_Request_ request;
    each_field(request, FillField{options_, 0});
    rtps::WriteParams parameters;
    parameters.related_sample_identity().writer_guid() = reader_->guid();
    answers_ = 0;
    written_ms_ = steady_ms();
    if (!writer_->write(&request, parameters)) fail("writing the request");
    sequence_number_ = static_cast<int64_t>(parameters.sample_identity().sequence_number().to64long());
  }

  // Takes replies for `ms`, or until the answer arrives if `until_answered`.
  void listen(double ms, bool until_answered) {
    const double until = steady_ms() + ms;
    for (double left; (left = until - steady_ms()) > 0 && !must_end(0);) {
      reader_->wait_for_unread_message(eprosima::fastrtps::Duration_t(static_cast<long double>(std::min(left, 50.0)) / 1e3L));
      take_replies();
      if (until_answered && answers_ > 0) return;
    }
  }

  void take_replies() {
    srv::SafeShutdown_Response_ reply;
    dds::SampleInfo info;
    while (reader_->take_next_sample(&reply, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      const auto &asker = info.related_sample_identity.writer_guid();
      const int64_t asked = static_cast<int64_t>(info.related_sample_identity.sequence_number().to64long());
      // rmw_fastrtps accepts a reply that names either of its endpoints.
      const bool own = asker == reader_->guid() || asker == writer_->guid();
      const bool answers = own && asked == sequence_number_;
      event_begin("reply");
      event_integer("client", number_);
      event_integer("request", asked);
      event_flag("own", own);
      event_flag("repeated", own && (!answers || answers_ > 0));
      event_number("round_trip_ms", steady_ms() - written_ms_);
      event_open("data", '{');
      print_message(reply);
      event_close('}');
      event_end();
      if (answers) answers_++;
    }
  }

  const options &options_;
  const int number_;
  Participant participant_;
  dds::DataReader *reader_;
  dds::DataWriter *writer_;
  int64_t sequence_number_ = 0;
  double written_ms_ = 0;
  int answers_ = 0;  // to the request in progress
};

}  // namespace

bool call(const options &options) {
  bool done = true;
  for (int number = 1; number <= options.clients && !must_end(0); number++) done = Client(options, number).run() && done;
  return done;
}

}  // namespace peer
