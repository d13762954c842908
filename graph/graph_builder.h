// Builds a graph in a program, without files and without protobuf.
//
//   GraphBuilder b;
//   b.AddNode("Placeholder", "x", {}, {{"dtype", DType::kFloat32}});
//   b.AddConstant("two", literal);
//   b.AddNode("Mul", "y", {"x", "two"}, {{"T", DType::kFloat32}});
//   session->ExtendFromMemory(b.SerializeAsGraphDef());
//
// Nothing is checked here: loading what was built reports all faults at once. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/proto/export.h"
#include "thalweg/proto/tensor_literal.h"

namespace thalweg {

class THALWEG_EXPORT GraphBuilder {
 public:
  using Attrs = std::vector<std::pair<std::string, Attr>>;

  GraphBuilder();
  ~GraphBuilder();
  GraphBuilder(GraphBuilder&&) noexcept;
  GraphBuilder& operator=(GraphBuilder&&) noexcept;

  // Inputs are written as in a GraphDef: "node", "node:port", "^node" (control inputs last). An empty `name` is
  // replaced by the op's name, made unique by a number. Returns the node's name. A text attribute needs
  // std::string("SAME"), not "SAME".
  std::string AddNode(absl::string_view op, absl::string_view name = "", const std::vector<std::string>& inputs = {},
                      const Attrs& attrs = {}, absl::string_view device = "");
  // A Const node. Tensor::ToLiteral makes a literal of a tensor.
  std::string AddConstant(absl::string_view name, const TensorLiteralPtr& value);
  // 0 unless set: the loader then applies the rules of the oldest graphs.
  void SetProducerVersion(int version);

  int num_nodes() const;
  // The bytes of a binary GraphDef.
  std::string SerializeAsGraphDef() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace thalweg
