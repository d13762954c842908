#include "thalweg/ops/register_all.h"

namespace thalweg {

const OpLibrary& BuiltinOps() {
  static const OpLibrary& library = [] () -> const OpLibrary& {
    auto& lib = *new OpLibrary;
    return lib;
  }();
  return library;
}

}  // namespace thalweg
