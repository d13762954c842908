#include "thalweg/ops/image/register.h"

#include "thalweg/ops/image/image_ops.h"

namespace thalweg {

void RegisterImageOps(OpLibrary& lib) {
  RegisterNonMaxSuppressionOps(lib);
  RegisterResizeOps(lib);
}

}  // namespace thalweg
