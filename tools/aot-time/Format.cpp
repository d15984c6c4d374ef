//===- Format.cpp - printf into a string ----------------------------------===//

#include "Format.h"

#include <cstdarg>
#include <cstdio>

std::string fovea::timing::format(const char *text, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, text);
  std::vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  return buffer;
}
