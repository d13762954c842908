#include "thalweg/graph/cost.h"

#include <algorithm>

namespace thalweg {
namespace {

double Elements(const PartialShape& shape) {
  double n = 1;
  for (int64_t d : shape.dims()) n *= IsKnownDim(d) ? static_cast<double>(d) : 1.0;
  return n;
}

// Strings and handles: about what a small object takes.
double ElementBytes(DType t) {
  const size_t size = DTypeSize(t);
  return size > 0 ? static_cast<double>(size) : 32.0;
}

// One thread of a current server core, rounded down: what scheduling assumes until a device profile says better.
constexpr double kFlopsPerNano = 8.0;
constexpr double kBytesPerNano = 8.0;

}  // namespace

double CostContext::InputElements(int i) const { return Elements(inputs_[i]); }
double CostContext::OutputElements(int i) const { return Elements(outputs_[i]); }

double CostContext::TotalInputBytes() const {
  double bytes = 0;
  for (int i = 0; i < num_inputs(); ++i) bytes += InputElements(i) * ElementBytes(input_types_[i]);
  return bytes;
}

double CostContext::TotalOutputBytes() const {
  double bytes = 0;
  for (int i = 0; i < num_outputs(); ++i) bytes += OutputElements(i) * ElementBytes(output_types_[i]);
  return bytes;
}

bool CostContext::AllShapesKnown() const {
  const auto known = [](const PartialShape& s) { return s.IsFullyKnown(); };
  return std::all_of(inputs_.begin(), inputs_.end(), known) && std::all_of(outputs_.begin(), outputs_.end(), known);
}

NodeCost NoCost(const CostContext& c) {
  NodeCost cost;
  cost.known = true;
  return cost;
}

NodeCost CopyCost(const CostContext& c) {
  NodeCost cost;
  cost.bytes_read = c.TotalInputBytes();
  cost.bytes_written = c.TotalOutputBytes();
  cost.known = c.AllShapesKnown();
  return cost;
}

NodeCost ReductionCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  cost.flops = c.num_inputs() > 0 ? c.InputElements(0) : 0;
  return cost;
}

double EstimatedNanos(const NodeCost& cost) {
  return std::max(cost.flops / kFlopsPerNano, (cost.bytes_read + cost.bytes_written) / kBytesPerNano);
}

}  // namespace thalweg
