// Fuses convolutions and matrix products with what follows them, so that each output element is finished while it is in
// cache (F13, F14, F16, F17, F20):
//
//   Conv2D | DepthwiseConv2dNative | MatMul
//     -> BiasAdd, or Add of a vector along the channels, or inference FusedBatchNorm (convolutions only)
//     -> Add of a tensor of the same shape
//     -> Relu | Relu6 | Elu | LeakyRelu | Sigmoid | Tanh, or Mul with Sigmoid of the same ("Swish", a name of our own)
//
// each step optional. The fused op computes the same bits. What is taken out must have one reader and neither control
// inputs nor control readers, must not be preserved, and all of it must ask for the same device; images are NHWC,
// elements float (or, for convolutions, double). The last node of the chain becomes the fused one and keeps its name.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> FuseBiasActivation(Graph& graph, const PassContext& context);

}  // namespace thalweg
