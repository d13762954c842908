// A constant float matrix, packed for being multiplied by one row at a time, over and over: what a recurrent cell does with its
// weights. Such a product takes as long as reading the matrix. A matrix somewhat larger than the second-level cache is
// read in the opposite direction every other time, so that what the last product left in the cache is read from there
// (2 MiB on a core with 2 MiB: 24 us in place of 29).
//
// Thread-safe; results depend neither on the direction nor on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "thalweg/devices/tensor.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

class PackedMatrix {
 public:
  // Packs the constant input `operand`, a float matrix; null if it is none, if packing does not pay, or without memory for it.
  static std::unique_ptr<PackedMatrix> Make(const KernelInit& init, size_t operand);

  // c (the columns) = row (the rows of the matrix) * matrix.
  void Multiply(KernelContext& ctx, const float* row, float* c);

 private:
  PackedMatrix(int64_t rows, int64_t columns, Tensor panels) : rows_(rows), columns_(columns), panels_(std::move(panels)) {}
  int64_t num_panels() const;

  const int64_t rows_, columns_;
  const Tensor panels_;  // panels of columns, one after the other, each row by row; the last is filled up with zeros
  std::atomic<bool> backwards_{false};
};

}  // namespace thalweg
