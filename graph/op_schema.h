// What an op is, apart from its kernels: arguments, attributes, defaults, statefulness, shape function and cost function.
//
// Schemas are declared in ops/<family> next to their kernels, in a compact text form:
//
//   registry.Add("ConcatV2(values: N*T, axis: Tidx) -> output: T",
//                "N: int >= 2; T: type; Tidx: {int32, int64} = int32")
//       .Shape(ConcatShape)
//       .Cost(CopyCost);
//
// An argument is `name: TYPE` with TYPE one of: a dtype ("float", "int32", "resource"), a type attribute ("T"), a count and
// a type ("N*T", "N*int32"), or a list(type) attribute ("Tin"); `Ref(TYPE)` marks a reference. Several outputs are listed
// in parentheses. An attribute is `name: KIND [>= MIN] [= DEFAULT]` with KIND one of: int, float, bool, string, type, shape,
// tensor, func, list(KIND), `{a, b}` (allowed types), `{"x", "y"}` (allowed strings), list({a, b}); predefined sets:
// `numbertype`, `realnumbertype`, `quantizedtype`.
//
// Threading: registries are filled once, then read-only and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/proto/dtype.h"

namespace thalweg {

class ShapeContext;
class CostContext;
struct NodeCost;

// InvalidArgument means: no run with these known shapes and values could succeed.
using ShapeFn = absl::Status (*)(ShapeContext& c);
using CostFn = NodeCost (*)(const CostContext& c);

struct ArgDecl {
  std::string name;
  DType type = DType::kInvalid;  // a fixed type, or
  std::string type_attr;         // the attribute of kind type, or
  std::string type_list_attr;    // the attribute of kind list(type)
  std::string number_attr;       // non-empty: this many consecutive tensors of the type above
  bool is_ref = false;
};

enum class AttrKind : uint8_t { kInt, kFloat, kBool, kString, kType, kShape, kTensor, kFunc };

struct AttrDecl {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  bool is_list = false;
  bool has_default = false;
  Attr default_value;
  bool has_minimum = false;
  int64_t minimum = 0;  // of an int, or of the length of a list
  std::vector<DType> allowed_types;
  std::vector<std::string> allowed_strings;

  std::string KindName() const;  // "int", "list(type)"
};

// How the executor treats a node. Everything that is not kNormal is done by the executor itself; schemas say so here, so
// that runtime/ knows no op by name.
enum class OpRole : uint8_t {
  kNormal,     // runs a kernel
  kNoOp,       // only orders others
  kConstant,   // attr "value" holds its only output
  kArg,        // attr "index": the feed it stands for
  kRetval,     // attr "index": the fetch it stands for
  kSend,       // hands its input to the _Recv of the same attr "pair"
  kRecv,
  // Control flow. References are handed on as references by the same roles.
  kSwitch,          // [data, bool or int32]: data goes to the output so numbered, others stay empty (A31, A34)
  kMerge,           // output 0 is the input that arrived, output 1 its index (A24-A30)
  kEnter,           // attrs "frame_name", "is_constant", "parallel_iterations"
  kExit,
  kNextIteration,
  kLoopCond,        // hands a host bool on
  kControlTrigger,  // waits for all its inputs, never dead (A22)
};

// Roles whose nodes may leave an output empty; of any other node that is an error (A31).
inline bool MayLeaveOutputsEmpty(OpRole role) { return role == OpRole::kSwitch || role == OpRole::kRecv; }

struct OpSchema {
  std::string name;
  std::vector<ArgDecl> inputs;
  std::vector<ArgDecl> outputs;
  std::vector<AttrDecl> attrs;
  bool stateful = false;               // never merged, folded or duplicated; keeps its device across steps
  bool commutative = false;            // Op(a, b) == Op(b, a), to the bit
  bool allows_uninitialized_input = false;
  int deprecated_at = 0;               // producer version from which a graph may not use it; 0: not deprecated
  std::string deprecation_advice;
  OpRole role = OpRole::kNormal;
  ShapeFn shape_fn = nullptr;
  CostFn cost_fn = nullptr;

  const AttrDecl* FindAttr(absl::string_view attr) const;
};

// Resolves the argument types of a node with the given attributes: one entry per tensor. InvalidArgument naming the
// attribute if one is missing, of a wrong kind, or a count is negative or above 65536.
absl::Status ResolveInputTypes(const NodeAttrs& attrs, std::vector<DType>* types);
absl::Status ResolveOutputTypes(const NodeAttrs& attrs, std::vector<DType>* types);
// First flat index and number of tensors of argument `name`. InvalidArgument if the op has no such argument.
struct ArgRange { int begin = 0; int count = 0; };
absl::StatusOr<ArgRange> InputRange(const NodeAttrs& attrs, absl::string_view name);
absl::StatusOr<ArgRange> OutputRange(const NodeAttrs& attrs, absl::string_view name);

class OpSchemaBuilder {
 public:
  explicit OpSchemaBuilder(OpSchema* schema) : schema_(schema) {}
  OpSchemaBuilder& Shape(ShapeFn fn) { schema_->shape_fn = fn; return *this; }
  OpSchemaBuilder& Cost(CostFn fn) { schema_->cost_fn = fn; return *this; }
  OpSchemaBuilder& Stateful() { schema_->stateful = true; return *this; }
  OpSchemaBuilder& Commutative() { schema_->commutative = true; return *this; }
  OpSchemaBuilder& AllowsUninitializedInput() { schema_->allows_uninitialized_input = true; return *this; }
  OpSchemaBuilder& Role(OpRole role) { schema_->role = role; return *this; }
  OpSchemaBuilder& Deprecated(int version, absl::string_view advice) {
    schema_->deprecated_at = version;
    schema_->deprecation_advice = std::string(advice);
    return *this;
  }

 private:
  OpSchema* schema_;
};

class OpRegistry {
 public:
  // Parses and adds a declaration. A malformed or repeated one is a programming error: it is printed and aborts.
  OpSchemaBuilder Add(absl::string_view signature, absl::string_view attrs = "");
  // Null if there is none.
  const OpSchema* Find(absl::string_view op) const;
  // Sorted by name.
  std::vector<const OpSchema*> All() const;

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<OpSchema>> schemas_;
};

}  // namespace thalweg
