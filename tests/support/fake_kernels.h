// A KernelCatalog for tests: every op has kernels everywhere, except what a test takes away.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg::testing {

class FakeKernels : public KernelCatalog {
 public:
  // `op` has no kernel on `backend`; with a type: none for that type of attr "T" or "dtype".
  FakeKernels& Without(const std::string& backend, const std::string& op, DType type = DType::kInvalid) {
    missing_.insert({backend, op, type});
    return *this;
  }
  FakeKernels& WithPriority(const std::string& backend, const std::string& op, int priority) {
    priorities_[{backend, op}] = priority;
    return *this;
  }
  // These inputs and outputs of `op` are in host memory on `backend`.
  FakeKernels& WithHostMemory(const std::string& backend, const std::string& op, std::vector<int> inputs,
                              std::vector<int> outputs) {
    host_[{backend, op}] = {std::move(inputs), std::move(outputs)};
    return *this;
  }

  absl::Status CanRun(const Node& node, const std::string& backend) const override {
    ++questions;
    const std::string op(node.op);
    DType type = node.node_attrs().GetOr<DType>("T", DType::kInvalid);
    if (type == DType::kInvalid) type = node.node_attrs().GetOr<DType>("dtype", DType::kInvalid);
    if (missing_.contains({backend, op, DType::kInvalid}) || missing_.contains({backend, op, type})) {
      return absl::NotFoundError(absl::StrCat("no kernel for ", op, " T=", DTypeName(type), " on ", backend));
    }
    return absl::OkStatus();
  }

  int Priority(const Node& node, const std::string& backend) const override {
    auto it = priorities_.find({backend, std::string(node.op)});
    return it == priorities_.end() ? 0 : it->second;
  }

  void MemoryKinds(const Node& node, const std::string& backend, std::vector<bool>* inputs,
                   std::vector<bool>* outputs) const override {
    inputs->assign(node.num_data_inputs, false);
    outputs->assign(node.num_outputs(), false);
    auto it = host_.find({backend, std::string(node.op)});
    if (it == host_.end()) return;
    for (int i : it->second.first) (*inputs)[i] = true;
    for (int i : it->second.second) (*outputs)[i] = true;
  }

  mutable int questions = 0;  // calls of CanRun

 private:
  absl::flat_hash_set<std::tuple<std::string, std::string, DType>> missing_;
  absl::flat_hash_map<std::pair<std::string, std::string>, int> priorities_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::pair<std::vector<int>, std::vector<int>>> host_;
};

// Devices from local names: "CPU:0" runs on backend cpu in host memory, everything else on backend sim in its own
// memory.
inline std::vector<PlacementDevice> TestDevices(const std::vector<std::string>& names) {
  std::vector<PlacementDevice> devices;
  const DeviceName base = *DeviceName::Parse("/job:localhost/replica:0/task:0");
  for (const std::string& name : names) {
    PlacementDevice device;
    device.name = DeviceName::ParseLocalOrFull(name)->CompletedFrom(base);
    device.host_memory = device.name.type == "CPU";
    device.backend = device.host_memory ? "cpu" : "sim";
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace thalweg::testing
