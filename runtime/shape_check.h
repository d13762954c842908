// A debugging aid: what runs is held against what shape inference said.
//
// With THALWEG_CHECK_SHAPES set in the environment, kernels are wrapped when a plan is made: each execution compares the
// shapes of its inputs and outputs with the inferred ones, symbols included, and fails with Internal where they disagree.
// Values that no kernel makes (of Merge, Enter, transfers, constants) are seen as inputs of those that read them.
#pragma once

#include <memory>
#include <vector>

#include "thalweg/ops/kernel.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

// Whether the environment asks for the check. Read once.
bool ShapeCheckWanted();

// What inference knows of one node.
struct NodeShapes {
  std::vector<PartialShape> inputs;
  std::vector<PartialShape> outputs;
};

// `kernel` with the check around it.
std::shared_ptr<Kernel> WithShapeCheck(std::shared_ptr<Kernel> kernel, NodeShapes inferred);

}  // namespace thalweg
