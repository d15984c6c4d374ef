//===- LastMessage.cpp - what the calling thread's call said --------------===//

#include "LastMessage.h"

#include "OfThread.h"

namespace fovea::rt {
namespace {

/// What lastMessage() returns: that of the thread's `Message`, or a text that
/// stays.
thread_local const char *current = "";

struct Message {
  std::string text;
  ~Message() { current = ""; }
};

} // namespace

void keepMessage(const char *text) noexcept { current = text; }

void keepMessage(std::string &&text) noexcept {
  if (text.empty()) { // as of nearly every launch
    current = "";
    return;
  }
  Message *owned = OfThread<Message>::make();
  if (!owned) {
    current = "memory ran out, and with it the message";
    return;
  }
  owned->text = std::move(text);
  current = owned->text.c_str();
}

const char *lastMessage() noexcept { return current; }

} // namespace fovea::rt
