#include "thalweg/graph/partition/send_recv.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/partition/transfer_cause.h"

namespace thalweg {
namespace {

Attr FirstArgumentOnHost() { return MakeListAttr(std::vector<int64_t>{0}); }

AttrMap TokenAttrs() {
  auto empty = std::make_shared<TensorLiteral>();
  empty->dtype = DType::kFloat32;
  empty->shape = Shape::Of({0});
  AttrMap attrs;
  attrs.Set("dtype", DType::kFloat32);
  attrs.Set("value", TensorLiteralPtr(std::move(empty)));
  return attrs;
}

}  // namespace

SendRecvMaker::SendRecvMaker(Graph& graph, Placement& placement, absl::Span<const PlacementDevice> devices,
                             DerivedPlacement& derived)
    : graph_(graph), placement_(placement), devices_(devices), derived_(derived), token_attrs_(TokenAttrs()) {}

absl::StatusOr<NodeId> SendRecvMaker::RecvFor(Endpoint source, bool source_on_host, NodeId consumer,
                                              bool destination_on_host) {
  const auto key = std::make_tuple(source, graph_.node(consumer).device, destination_on_host);
  auto found = pairs_.find(key);
  if (found == pairs_.end()) {
    THALWEG_ASSIGN_OR_RETURN(const int pair, MakePair(source, source_on_host, consumer, destination_on_host));
    found = pairs_.emplace(key, pair).first;
  }
  Transfer& transfer = transfers_[found->second];
  if (transfer.consumers.empty() || transfer.consumers.back() != consumer) transfer.consumers.push_back(consumer);
  return transfer.recv;
}

absl::StatusOr<int> SendRecvMaker::MakePair(Endpoint source, bool source_on_host, NodeId consumer,
                                            bool destination_on_host) {
  Transfer transfer;
  transfer.pair = static_cast<int>(transfers_.size());
  transfer.source = source;
  transfer.source_device = graph_.node(source.node).device;
  transfer.destination_device = graph_.node(consumer).device;
  transfer.source_on_host = source_on_host;
  transfer.destination_on_host = destination_on_host;
  transfer.cause = TransferCause(graph_, placement_, devices_, transfer, consumer);

  Endpoint value = source;
  if (source.is_control()) {
    THALWEG_ASSIGN_OR_RETURN(value, ControlToken(source.node));
  }
  transfer.dtype = RemoveRef(graph_.node(value.node).output_types[value.port]);

  const std::string base(graph_.node(source.node).name);
  THALWEG_ASSIGN_OR_RETURN(Node send, NewInternalNode(graph_, "_Send"));
  send.attrs.Set("pair", static_cast<int64_t>(transfer.pair));
  send.attrs.Set("T", transfer.dtype);
  if (source_on_host && !devices_[transfer.source_device].host_memory)
    send.attrs.Set(kInputHostMemoryAttr, FirstArgumentOnHost());
  send.inputs = {value};
  send.num_data_inputs = 1;
  transfer.send =
      derived_.AddNode(absl::StrCat(base, "/_send"), std::move(send), transfer.source_device, "B10", source.node);

  THALWEG_ASSIGN_OR_RETURN(Node recv, NewInternalNode(graph_, "_Recv"));
  recv.attrs.Set("pair", static_cast<int64_t>(transfer.pair));
  recv.attrs.Set("tensor_type", transfer.dtype);
  if (destination_on_host && !devices_[transfer.destination_device].host_memory) {
    recv.attrs.Set(kOutputHostMemoryAttr, FirstArgumentOnHost());
  }
  recv.inputs = {{transfer.send, kControlPort}};
  recv.output_types = {transfer.dtype};
  transfer.recv =
      derived_.AddNode(absl::StrCat(base, "/_recv"), std::move(recv), transfer.destination_device, "B10", source.node);
  transfers_.push_back(std::move(transfer));
  return transfers_.back().pair;
}

absl::StatusOr<Endpoint> SendRecvMaker::ControlToken(NodeId after) {
  if (auto found = tokens_.find(after); found != tokens_.end()) return found->second;
  THALWEG_ASSIGN_OR_RETURN(Node token, NewInternalNode(graph_, "Const"));
  const int device = graph_.node(after).device;
  token.attrs = token_attrs_;
  if (!devices_[device].host_memory) token.attrs.Set(kOutputHostMemoryAttr, FirstArgumentOnHost());
  token.inputs = {{after, kControlPort}};
  token.output_types = {DType::kFloat32};
  const NodeId id =
      derived_.AddNode(absl::StrCat(graph_.node(after).name, "/_control"), std::move(token), device, "B11", after);
  return tokens_.emplace(after, Endpoint{id, 0}).first->second;
}

}  // namespace thalweg
