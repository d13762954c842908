// Session options for the ways of running loops.
#pragma once

#include "thalweg/runtime/session.h"
#include "thalweg/tests/support/loop_kinds.h"

namespace thalweg::testing {

inline SessionOptions OptionsFor(const LoopWay& way) {
  SessionOptions options;
  options.threads = way.threads;
  options.general_frames = way.general_frames;
  options.devices = way.devices;
  options.policy = way.policy;
  return options;
}

}  // namespace thalweg::testing
