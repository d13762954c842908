// What placement and partitioning are told about kernels.
#include "thalweg/runtime/kernel_services.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "thalweg/graph/internal_nodes.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/graph_text.h"

namespace thalweg {
namespace {

struct OnHost {
  std::vector<bool> inputs, outputs;
};

// The arguments of `name` that are in host memory on the simulated accelerator.
OnHost OnSim(const Graph& graph, const char* name) {
  OnHost host;
  MakeKernelCatalog(BuiltinOps())->MemoryKinds(graph.node(graph.Find(name)), "sim", &host.inputs, &host.outputs);
  return host;
}

TEST(MemoryKinds, A84ConstantsAreOnTheDeviceUnlessTheAttributeSaysHost) {
  Graph graph = testing::GraphFromText(BuiltinOps().schemas, "c = Const() [dtype=int32, value=tensor<int32[1]:1>]\n"
                                                               "r = Reshape(c, c) [T=int32]");
  EXPECT_EQ(OnSim(graph, "c").outputs, std::vector<bool>{false});
  EXPECT_EQ(OnSim(graph, "r").inputs, (std::vector<bool>{false, true}));  // the kernel reads the shape on the host
  EXPECT_EQ(OnSim(graph, "r").outputs, std::vector<bool>{false});
  // What partitioning makes of a control edge: to copy the token to the device and back would cost two switches of threads.
  graph.mutable_node(graph.Find("c")).attrs.Set(kOutputHostMemoryAttr, MakeListAttr(std::vector<int64_t>{0}));
  EXPECT_EQ(OnSim(graph, "c").outputs, std::vector<bool>{true});
}

TEST(MemoryKinds, A84KernelsMustNameArgumentsOfTheirOp) {
  Graph graph = testing::GraphFromText(BuiltinOps().schemas, "c = Const() [dtype=float32, value=tensor<float32[2]:1,2>]");
  KernelDef def;
  def.host_memory = {"no_such_argument"};
  EXPECT_EQ(FindHostArguments(graph.node(0), {}, &def).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thalweg
