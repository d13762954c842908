// A program that uses Debian's libprotobuf for its own graph.proto, and thalweg beside it: both must work in one process.
#include <cstdio>
#include <string>

#include "graph.pb.h"
#include "thalweg/runtime/session.h"

namespace {

// The number of nodes after a round trip through the program's own message; -1 if it did not survive.
int CrossingsAfterRoundTrip() {
  roads::GraphDef roads;
  roads.add_node()->set_crossing("north");
  roads.add_node()->set_crossing("south");
  roads::GraphDef copy;
  return copy.ParseFromString(roads.SerializeAsString()) && copy.node(1).crossing() == "south" ? copy.node_size() : -1;
}

}  // namespace

int main() {
  auto session = thalweg::Session::FromMemory(
      "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }"
      "node { name: 'y' op: 'Add' input: 'x' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }");
  if (!session.ok()) return std::printf("%s\n", session.status().ToString().c_str()), 1;
  auto sum = (*session)->Run({{"x", *thalweg::Tensor::Scalar(1.5f)}}, {"y"});
  if (!sum.ok()) return std::printf("%s\n", sum.status().ToString().c_str()), 1;
  std::printf("sum %g, crossings %d\n", *(*sum)[0].scalar<float>(), CrossingsAfterRoundTrip());
}
