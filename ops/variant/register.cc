#include "thalweg/ops/variant/register.h"

#include "thalweg/ops/variant/variant_ops.h"

namespace thalweg {

void RegisterVariantOps(OpLibrary& lib) {
  RegisterListElementOps(lib);
  RegisterListBulkOps(lib);
  RegisterListConcatOps(lib);
  RegisterOptionalOps(lib);
  RegisterVariantArithmetic(lib);
}

}  // namespace thalweg
