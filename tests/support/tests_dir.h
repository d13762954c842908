// Where the data of the tests lies.
#pragma once

#include <string>

namespace thalweg::testing {

// The absolute path of tests/, without a slash at its end. Only one file knows it at compile time, so that the objects of all
// others are the same in every clone and a compiler cache can share them.
std::string TestsDir();

}  // namespace thalweg::testing
