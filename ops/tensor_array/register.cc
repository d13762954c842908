#include "thalweg/ops/tensor_array/register.h"

#include "thalweg/ops/tensor_array/tensor_array_ops.h"

namespace thalweg {

void RegisterTensorArrayOps(OpLibrary& lib) {
  RegisterElementOps(lib);
  RegisterBulkOps(lib);
  RegisterStackOps(lib);
}

}  // namespace thalweg
