// _FusedElementwise: several elementwise ops of one type in one execution, made by graph/passes/fuse_elementwise.
//
// The inner loops of the ops run one after the other over a tile that stays in the first-level cache; between them nothing is
// written to memory. Results are those of the ops one by one, to the bit.
//
// Step s computes ops[s] of arguments `operands`, listed step by step: i >= 0 is input i, and -1 - t the result of step t < s.
// `alphas[s]` is the step's attribute, if its op has one. The last step's result is the output.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise.h"
#include "thalweg/ops/math/register_internal.h"
#include "thalweg/ops/register_all.h"

namespace thalweg::math {
namespace {

constexpr int64_t kTile = 512;
constexpr int64_t kMaxElementBytes = 8;
constexpr size_t kMostSteps = 16;
constexpr size_t kMostInputs = 8;
constexpr size_t kMostResults = 8;  // that are alive at a time
constexpr int64_t kLongRow = 64;    // broadcast operands are read in place from rows of at least this length
constexpr double kMinSplitNanos = 10000;

struct Step {
  const ElementwiseDef* def = nullptr;
  double param = 0;
  int operands[kMaxElementwiseInputs] = {};  // as in the attribute
  int slot = 0;                              // of the result, among those of a tile
};

// The definition and attribute of one op, taken from the kernel that it has for this type.
absl::StatusOr<Step> StepOf(const KernelInit& init, const std::string& op, DType type, float alpha) {
  const OpLibrary& library = BuiltinOps();
  KernelNode node = init.node();
  node.schema = library.schemas.Find(op);
  if (node.schema == nullptr) return absl::InvalidArgumentError(absl::StrCat("unknown op ", op, " in attribute ops"));
  AttrMap attrs;
  attrs.Set("T", type);
  if (node.schema->FindAttr("alpha") != nullptr) attrs.Set("alpha", alpha);
  node.attrs = &attrs;
  const std::vector<DType> types(kMaxElementwiseInputs, type);
  const KernelSignature signature = KernelSignature::OnHost(types, {type});
  node.signature = &signature;
  THALWEG_ASSIGN_OR_RETURN(const KernelDef* def, library.kernels.Find(node.node_attrs(), "cpu"));
  THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, def->factory(KernelInit(node)));
  const auto* elementwise = dynamic_cast<const ElementwiseKernel*>(kernel.get());
  if (elementwise == nullptr) return absl::InvalidArgumentError(absl::StrCat(op, " in attribute ops is no elementwise op"));
  const ElementwiseDef& loops = elementwise->def();
  bool fits = loops.output_type == type && loops.refusal == nullptr;
  for (int i = 0; i < loops.num_inputs; ++i) fits &= loops.input_types[i] == type;
  if (!fits) return absl::InvalidArgumentError(absl::StrCat(op, " of ", DTypeName(type), " cannot be one of several steps"));
  Step step;
  step.def = &loops;
  step.param = elementwise->param();
  return step;
}

class FusedElementwiseKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const DType type, init.Attr<DType>("T"));
    THALWEG_ASSIGN_OR_RETURN(const auto ops, init.Attr<std::vector<std::string>>("ops"));
    THALWEG_ASSIGN_OR_RETURN(const auto operands, init.Attr<std::vector<int64_t>>("operands"));
    const auto alphas = init.node().node_attrs().GetOr<std::vector<float>>("alphas", {});
    const size_t num_inputs = init.node().input_types().size();
    if (ops.empty() || ops.size() > kMostSteps || num_inputs == 0 || num_inputs > kMostInputs) {
      return absl::InvalidArgumentError(absl::StrCat(ops.size(), " steps of ", num_inputs, " inputs; there must be 1 to ", kMostSteps,
                                                     " steps of 1 to ", kMostInputs, " inputs"));
    }
    auto kernel = std::make_unique<FusedElementwiseKernel>();
    kernel->element_bytes_ = static_cast<int64_t>(ElementBytes(type));
    size_t next = 0;
    for (size_t s = 0; s < ops.size(); ++s) {
      THALWEG_ASSIGN_OR_RETURN(Step step, StepOf(init, ops[s], type, s < alphas.size() ? alphas[s] : 0.0f));
      for (int i = 0; i < step.def->num_inputs; ++i, ++next) {
        const int64_t operand = next < operands.size() ? operands[next] : INT64_MAX;
        if (operand >= static_cast<int64_t>(num_inputs) || operand < -static_cast<int64_t>(s)) {
          return absl::InvalidArgumentError(absl::StrCat("operand ", next, " of step ", s, ", ", ops[s],
                                                         ", is neither an input nor the result of an earlier step"));
        }
        step.operands[i] = static_cast<int>(operand);
      }
      kernel->nanos_per_element_ += step.def->nanos_per_element;
      kernel->has_rest_ |= step.def->rest != nullptr;
      kernel->steps_.push_back(step);
    }
    THALWEG_RETURN_IF_ERROR(kernel->AssignSlots());
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  bool suits_like_nodes() const override { return true; }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, OutputShape(ctx));
    std::vector<BroadcastPlan> plans;
    Execution execution;
    for (int i = 0; i < ctx.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(execution.inputs[i].Describe(ctx.input(i), shape, &plans));
    execution.plans = plans;
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, AllocateOver(ctx, shape));
    execution.out = static_cast<char*>(out->mutable_raw());
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      execution.inputs[i].data = static_cast<const char*>(ctx.input(i).raw());
      const Input& input = execution.inputs[i];
      if (execution.row == 0 && input.plan >= 0) {
        const BroadcastPlan& plan = plans[input.plan];
        if (plan.dim(plan.rank() - 1) >= kLongRow) execution.row = plan.dim(plan.rank() - 1);
      }
    }
    const int64_t n = shape.num_elements();
    if (static_cast<double>(n) * nanos_per_element_ < kMinSplitNanos) {
      Run(execution, n, 0, n);
    } else {
      ctx.ParallelFor(n, nanos_per_element_, [&](int64_t begin, int64_t end) { Run(execution, n, begin, end); });
    }
    return absl::OkStatus();
  }

 private:
  // How the elements of an input belong to those of the output.
  struct Input {
    const char* data = nullptr;
    int64_t stride = 0;  // in elements: 1 for one each, 0 for one in all
    int plan = -1;       // index of the plan of any other broadcasting, whose operand 1 it is

    absl::Status Describe(const Tensor& tensor, const Shape& shape, std::vector<BroadcastPlan>* plans) {
      if (tensor.shape() == shape) {
        stride = 1;
      } else if (tensor.num_elements() != 1) {
        THALWEG_ASSIGN_OR_RETURN(BroadcastPlan p, BroadcastPlan::Make({&shape, &tensor.shape()}));
        if (p.is_full(1)) {
          stride = 1;
        } else {
          plan = static_cast<int>(plans->size());
          plans->push_back(std::move(p));
        }
      }
      return absl::OkStatus();
    }
  };
  struct Execution {
    Input inputs[kMostInputs];
    absl::Span<const BroadcastPlan> plans;
    char* out = nullptr;
    int64_t row = 0;  // tiles stay within rows of this length; 0: no input asks for it
  };

  // Results share a slot where the earlier one has been used for the last time; an op may write over its operand.
  absl::Status AssignSlots() {
    std::vector<size_t> last_use(steps_.size(), 0);
    for (size_t s = 0; s < steps_.size(); ++s) {
      for (int i = 0; i < steps_[s].def->num_inputs; ++i) {
        if (steps_[s].operands[i] < 0) last_use[-1 - steps_[s].operands[i]] = s;
      }
    }
    size_t busy_until[kMostResults] = {};
    for (size_t s = 0; s + 1 < steps_.size(); ++s) {
      size_t slot = 0;
      while (slot < kMostResults && busy_until[slot] > s) ++slot;
      if (slot == kMostResults) return absl::InvalidArgumentError(absl::StrCat("more than ", kMostResults, " results are needed at a time"));
      busy_until[slot] = last_use[s];
      steps_[s].slot = static_cast<int>(slot);
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<Shape> OutputShape(KernelContext& ctx) {
    Shape shape = ctx.input(0).shape();
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == shape || ctx.input(i).rank() == 0) continue;
      THALWEG_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, ctx.input(i).shape()));
    }
    return shape;
  }

  // The output, in the place of an input of as many elements if one can be had. Only whole inputs fit, and of those a tile's
  // elements are read before the last step writes them.
  static absl::StatusOr<Tensor*> AllocateOver(KernelContext& ctx, const Shape& shape) {
    int whole[4] = {-1, -1, -1, -1};
    int found = 0;
    for (int i = 0; i < ctx.num_inputs() && found < 4; ++i) {
      if (ctx.input(i).num_elements() == shape.num_elements()) whole[found++] = i;
    }
    if (found == 0) return ctx.AllocateOutput(0, shape);
    std::fill(whole + found, whole + 4, whole[0]);
    return ctx.ForwardOrAllocateOutput({whole[0], whole[1], whole[2], whole[3]}, 0, shape);
  }

  void Run(const Execution& execution, int64_t n, int64_t begin, int64_t end) const {
    const int64_t grouped = has_rest_ ? n - n % kGroup : n;
    for (int64_t at = begin; at < end;) {
      int64_t stop = std::min(at + kTile, end);
      if (at < grouped) stop = std::min(stop, grouped);
      if (execution.row > 0) stop = std::min(stop, at - at % execution.row + execution.row);
      RunTile(execution, at, stop - at, at >= grouped);
      at = stop;
    }
  }

  void RunTile(const Execution& execution, int64_t at, int64_t count, bool is_rest) const {
    alignas(64) char results[kMostResults][kTile * kMaxElementBytes];
    alignas(64) char expanded[kMostInputs][kTile * kMaxElementBytes];
    const void* inputs[kMostInputs];
    int64_t input_strides[kMostInputs];
    for (size_t i = 0; i < kMostInputs; ++i) {
      const Input& input = execution.inputs[i];
      inputs[i] = input.data + at * input.stride * element_bytes_;
      input_strides[i] = input.stride;
      if (input.plan >= 0) ReadBroadcast(execution.plans[input.plan], input.data, at, count, expanded[i], &inputs[i], &input_strides[i]);
    }
    for (const Step& step : steps_) {
      const void* operands[kMaxElementwiseInputs];
      int64_t strides[kMaxElementwiseInputs];
      for (int i = 0; i < step.def->num_inputs; ++i) {
        const int operand = step.operands[i];
        operands[i] = operand >= 0 ? inputs[operand] : results[steps_[-1 - operand].slot];
        strides[i] = operand >= 0 ? input_strides[operand] : 1;
      }
      char* to = &step == &steps_.back() ? execution.out + at * element_bytes_ : results[step.slot];
      LoopState state{step.param};
      (is_rest && step.def->rest != nullptr ? step.def->rest : step.def->loop)(operands, strides, to, count, state);
    }
  }

  // Where the operand's elements for outputs [at, at + count) lie: in place if they are neighbours or all one, else written out.
  void ReadBroadcast(const BroadcastPlan& plan, const char* data, int64_t at, int64_t count, char* expanded, const void** elements,
                     int64_t* stride) const {
    const int last = plan.rank() - 1;
    const int64_t row_length = plan.dim(last), column_stride = plan.stride(1, last);
    const auto element = [&](int64_t position) {  // the operand's element for this element of the output
      int64_t offset = 0;
      for (int d = last; d >= 0; --d) {
        offset += position % plan.dim(d) * plan.stride(1, d);
        position /= plan.dim(d);
      }
      return data + offset * element_bytes_;
    };
    if (at % row_length + count <= row_length) {
      *elements = element(at);
      *stride = column_stride;
      return;
    }
    for (int64_t done = 0; done < count;) {
      const int64_t part = std::min(row_length - (at + done) % row_length, count - done);
      const char* from = element(at + done);
      char* to = expanded + done * element_bytes_;
      if (column_stride != 0) {
        std::copy_n(from, part * element_bytes_, to);
      } else {
        for (int64_t k = 0; k < part; ++k) std::copy_n(from, element_bytes_, to + k * element_bytes_);
      }
      done += part;
    }
    *elements = expanded;
    *stride = 1;
  }

  std::vector<Step> steps_;
  int64_t element_bytes_ = 0;
  double nanos_per_element_ = 0;
  bool has_rest_ = false;
};

absl::Status FusedShape(ShapeContext& c) {
  PartialShape shape = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(shape, ShapeContext::Broadcast(shape, c.input(i)));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

NodeCost FusedCost(const CostContext& c) {
  constexpr double kFlopsPerStep = 4;  // between those of a sum and of an exponential
  NodeCost cost = CopyCost(c);
  cost.flops = kFlopsPerStep * static_cast<double>(c.attrs().GetOr<std::vector<std::string>>("ops", {}).size()) * c.OutputElements(0);
  return cost;
}

}  // namespace

void RegisterFusedElementwiseOp(OpLibrary& lib) {
  lib.schemas
      .Add("_FusedElementwise(args: num_args*T) -> output: T",
           "T: {float, double}; num_args: int >= 1; ops: list(string); operands: list(int); alphas: list(float) = []")
      .Shape(FusedShape)
      .Cost(FusedCost);
  lib.kernels.Add("_FusedElementwise", "cpu", MakeFallibleKernel<FusedElementwiseKernel>).Type<float, double>("T");
}

}  // namespace thalweg::math
