#include "thalweg/tools/tensor_file.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/proto/tensor_literal.h"
#include "thalweg/tensor.pb.h"
#include "thalweg/tools/file.h"

namespace thalweg::tools {

absl::StatusOr<Tensor> ReadTensorProtoFile(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(path));
  TensorProto proto;
  if (file.bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !proto.ParseFromArray(file.bytes.data(), static_cast<int>(file.bytes.size()))) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a TensorProto"));
  }
  absl::StatusOr<TensorLiteralPtr> literal = DecodeTensorProto(proto);
  if (!literal.ok())
    return absl::Status(literal.status().code(), absl::StrCat("'", path, "': ", literal.status().message()));
  return Tensor::FromLiteral(*literal);
}

}  // namespace thalweg::tools
