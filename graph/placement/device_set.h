// A set of a session's devices, by index.
#pragma once

#include <bitset>

namespace thalweg {

inline constexpr int kMaxDevices = 128;
using DeviceSet = std::bitset<kMaxDevices>;

}  // namespace thalweg
