// The characters of long strings are charged to the budget for as long as the buffer of their tensor lives.
#include "thalweg/devices/text_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace thalweg {
namespace {

struct Limited {
  explicit Limited(int64_t limit)
      : budget(std::make_shared<MemoryBudget>(limit)), allocator(MakeHostAllocator("limited", budget)) {}

  Tensor Strings(const std::string& text, int64_t count) {
    Tensor t = Tensor::Allocate(DType::kString, Shape::Of({count}), *allocator).value();
    for (std::string& s : t.mutable_flat<std::string>()) s = text;
    return t;
  }

  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<Allocator> allocator;
};

TEST(TextMemory, LongStringsAreChargedOncePerBuffer) {
  Limited limited(1 << 20);
  Tensor strings = limited.Strings(std::string(999, 'a'), 10);
  const int64_t objects = limited.budget->in_use();
  ASSERT_TRUE(ChargeText(strings, *limited.allocator, -1).ok());
  EXPECT_GE(limited.budget->in_use(), objects + 10000);
  const int64_t charged = limited.budget->in_use();
  Tensor row = strings.Rows(2, 3);
  ASSERT_TRUE(ChargeText(row, *limited.allocator, -1).ok());
  EXPECT_EQ(limited.budget->in_use(), charged) << "what shares a buffer shares the charge";
  strings = Tensor();
  EXPECT_EQ(limited.budget->in_use(), charged) << "a row keeps the whole buffer";
  row = Tensor();
  EXPECT_EQ(limited.budget->in_use(), 0);
}

TEST(TextMemory, ShortStringsLieInTheirObjects) {
  Limited limited(1 << 20);
  const Tensor strings = limited.Strings("short", 10);
  const int64_t objects = limited.budget->in_use();
  ASSERT_TRUE(ChargeText(strings, *limited.allocator, -1).ok());
  EXPECT_EQ(limited.budget->in_use(), objects);
}

TEST(TextMemory, TheLimitCountsText) {
  Limited limited(1 << 16);
  const Tensor strings = limited.Strings(std::string(1 << 14, 'a'), 10);
  EXPECT_EQ(ChargeText(strings, *limited.allocator, -1).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ChargeOnly(*limited.allocator, 1 << 17, -1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ChargeOnly(*limited.allocator, 1 << 12, -1).ok());
}

TEST(TextMemory, ALiteralThatRepeatsALongStringObeysTheLimit) {  // robustness rule 24
  Limited limited(1 << 20);
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = DType::kString;
  literal->shape = Shape::Of({1000});
  literal->strings = {std::string(10000, 'a')};
  EXPECT_EQ(Tensor::FromLiteral(literal, *limited.allocator).status().code(), absl::StatusCode::kResourceExhausted);
  literal->shape = Shape::Of({10});
  EXPECT_TRUE(Tensor::FromLiteral(literal, *limited.allocator).ok());
  EXPECT_EQ(limited.budget->in_use(), 0);
}

}  // namespace
}  // namespace thalweg
