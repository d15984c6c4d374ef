//===- Status.cpp - results of the package library ------------------------===//

#include "fovea/Package/Status.h"

const char *fovea::toString(StatusCode code) {
  switch (code) {
  case StatusCode::Ok:
    return "ok";
  case StatusCode::InvalidArgument:
    return "invalid argument";
  case StatusCode::NotFound:
    return "not found";
  case StatusCode::Io:
    return "input/output error";
  case StatusCode::Busy:
    return "busy";
  case StatusCode::Corrupt:
    return "corrupt";
  case StatusCode::Incompatible:
    return "incompatible";
  case StatusCode::OutOfMemory:
    return "out of memory";
  }
  return "unknown";
}
