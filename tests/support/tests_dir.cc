#include "thalweg/tests/support/tests_dir.h"

namespace thalweg::testing {

std::string TestsDir() { return THALWEG_TESTS_DIR; }

}  // namespace thalweg::testing
