#include "thalweg/graph/lowering/call_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/findings.h"

namespace thalweg {
namespace {

absl::Status CheckArgs(const FunctionBody& body, absl::Span<const DType> types) {
  const size_t takes = body.args.size();
  if (types.size() != takes) {
    const std::string message = absl::StrCat("function ", Quoted(body.function.name), " takes ", takes, takes == 1 ? " argument" : " arguments",
                                             " but is given ", types.size());
    return types.size() < takes ? absl::InternalError(message) : absl::InvalidArgumentError(message);
  }
  for (size_t i = 0; i < takes; ++i) {
    if (types[i] == RemoveRef(body.arg_type(static_cast<int>(i)))) continue;
    return absl::InvalidArgumentError(absl::StrCat("argument ", i, " of function ", Quoted(body.function.name), " is ",
                                                   DTypeName(body.arg_type(static_cast<int>(i))), " but is given ", DTypeName(types[i])));
  }
  return absl::OkStatus();
}

// Of the results that both sides have.
absl::Status CheckResultTypes(const FunctionBody& body, absl::Span<const DType> types) {
  for (size_t i = 0; i < std::min(types.size(), body.results.size()); ++i) {
    const DType given = body.result_type(static_cast<int>(i));
    if (given == RemoveRef(types[i])) continue;
    return absl::InternalError(absl::StrCat("result ", i, " of function ", Quoted(body.function.name), " is ", DTypeName(given),
                                            " where the call declares ", DTypeName(types[i])));
  }
  return absl::OkStatus();
}

absl::Status WrongResultCount(const FunctionBody& body, size_t declared) {
  return absl::InternalError(absl::StrCat("function ", Quoted(body.function.name), " has ", body.results.size(),
                                          body.results.size() == 1 ? " result" : " results", " where the call declares ", declared));
}

}  // namespace

absl::Status CheckCall(const FunctionBody& body, absl::Span<const DType> arg_types, absl::Span<const DType> result_types) {
  THALWEG_RETURN_IF_ERROR(CheckArgs(body, arg_types));
  if (body.results.size() > result_types.size()) return WrongResultCount(body, result_types.size());
  return CheckResultTypes(body, result_types);
}

absl::Status TooFewResults(const Node& call, int given) {
  return absl::InternalError(absl::StrCat(NodeLabel(call), " declares ", call.num_outputs(), " results, but its function has only ", given));
}

absl::Status CheckBranch(const FunctionBody& body, absl::Span<const DType> arg_types, absl::Span<const DType> result_types) {
  if (absl::Status status = CheckArgs(body, arg_types); !status.ok()) return absl::InvalidArgumentError(status.message());
  if (body.results.size() != result_types.size()) return WrongResultCount(body, result_types.size());
  return CheckResultTypes(body, result_types);
}

absl::Status CheckLoop(const Node& loop, const FunctionBody& cond, const FunctionBody& body) {
  std::vector<DType> types;
  for (const DType type : loop.output_types) types.push_back(RemoveRef(type));
  absl::Status status = CheckArgs(cond, types);
  if (status.ok()) status = CheckBranch(body, types, types);
  if (status.ok() && cond.results.size() != 1) {
    status = absl::InvalidArgumentError(absl::StrCat("the condition ", Quoted(cond.function.name), " has ", cond.results.size(), " results; it must have one"));
  }
  if (!status.ok()) return absl::InvalidArgumentError(status.message());
  return absl::OkStatus();
}

}  // namespace thalweg
