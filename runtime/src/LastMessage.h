//===- LastMessage.h - what the calling thread's call said ------*- C++ -*-===//

#ifndef FOVEA_RUNTIME_SRC_LASTMESSAGE_H
#define FOVEA_RUNTIME_SRC_LASTMESSAGE_H

#include <string>

namespace fovea::rt {

/// Keeps a message until the thread's next. Where memory runs out, it is
/// replaced by one that says so.
void keepMessage(std::string &&text) noexcept;
/// The same of a text that stays for ever.
void keepMessage(const char *text) noexcept;

/// Never null.
const char *lastMessage() noexcept;

/// What HIP returned to the thread's latest call, where that was its failure.
inline thread_local int lastHipError = 0;
/// Why that call failed: FOVEA_CAUSE_...
inline thread_local int lastCause = 0;

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_LASTMESSAGE_H
