#include "thalweg/graph/graph_builder.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph.pb.h"
#include "thalweg/graph/attr_decode.h"

namespace thalweg {

struct GraphBuilder::State {
  GraphDef graph;
  absl::flat_hash_set<std::string> names;
};

GraphBuilder::GraphBuilder() : state_(std::make_unique<State>()) {}
GraphBuilder::~GraphBuilder() = default;
GraphBuilder::GraphBuilder(GraphBuilder&&) noexcept = default;
GraphBuilder& GraphBuilder::operator=(GraphBuilder&&) noexcept = default;

std::string GraphBuilder::AddNode(absl::string_view op, absl::string_view name, const std::vector<std::string>& inputs,
                                  const Attrs& attrs, absl::string_view device) {
  std::string unique(name.empty() ? op : name);
  for (int number = 1; name.empty() && state_->names.contains(unique); ++number) unique = absl::StrCat(op, "_", number);
  state_->names.insert(unique);

  NodeDef* const node = state_->graph.add_node();
  node->set_name(unique);
  node->set_op(std::string(op));
  node->set_device(std::string(device));
  for (const std::string& input : inputs) node->add_input(input);
  for (const auto& [attr, value] : attrs) EncodeAttr(value, &(*node->mutable_attr())[attr]);
  return unique;
}

std::string GraphBuilder::AddConstant(absl::string_view name, const TensorLiteralPtr& value) {
  return AddNode("Const", name, {}, {{"dtype", value->dtype}, {"value", value}});
}

void GraphBuilder::SetProducerVersion(int version) { state_->graph.mutable_versions()->set_producer(version); }

int GraphBuilder::num_nodes() const { return state_->graph.node_size(); }

std::string GraphBuilder::SerializeAsGraphDef() const { return state_->graph.SerializeAsString(); }

}  // namespace thalweg
