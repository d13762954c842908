// Variants on a device with memory of its own: what they hold stays in host memory.
#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/session.h"

namespace thalweg {
namespace {

constexpr char kLists[] = R"(
node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
node { name: 'shape' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
       attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { dim { size: 0 } } } } } }
node { name: 'one' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }
       attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape {} int_val: 1 } } } }
node { name: 'list' op: 'TensorListFromTensor' input: 'x' input: 'shape'
       attr { key: 'element_dtype' value { type: DT_FLOAT } } attr { key: 'shape_type' value { type: DT_INT32 } } }
node { name: 'made' op: 'MAKE' input: 'list' INPUTS attr { key: 'T' value { type: DT_VARIANT } } }
node { name: 'item' op: 'TensorListGetItem' input: 'made' input: 'one' input: 'shape' attr { key: 'element_dtype' value { type: DT_FLOAT } } }
node { name: 'y' op: 'Neg' input: 'item' attr { key: 'T' value { type: DT_FLOAT } } }
)";

class VariantsOnSim : public ::testing::Test {
 protected:
  // The negated second element of what `op` makes of a list of 3 and 4 on the accelerator.
  static float Second(const std::string& op, const std::string& inputs) {
    std::string text = kLists;
    text.replace(text.find("MAKE"), 4, op);
    text.replace(text.find("INPUTS"), 6, inputs);
    SessionOptions options;
    options.devices = "CPU:0,GPU:0=sim";
    options.pins = {{"made", "GPU:0"}, {"y", "GPU:0"}};
    absl::StatusOr<std::unique_ptr<Session>> session = Session::FromMemory(text, options);
    EXPECT_TRUE(session.ok()) << session.status();
    absl::StatusOr<std::vector<Tensor>> result = (*session)->Run({{"x", *Tensor::Of<float>({3, 4}, Shape::Of({2}))}}, {"y"});
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? (*result)[0].flat<float>()[0] : 0;
  }
};

TEST_F(VariantsOnSim, SumsOfLists) { EXPECT_EQ(Second("AddN", "input: 'list' attr { key: 'N' value { i: 2 } }"), -8); }
TEST_F(VariantsOnSim, ZerosOfLists) { EXPECT_EQ(Second("ZerosLike", ""), 0); }
TEST_F(VariantsOnSim, ListsPassedOn) { EXPECT_EQ(Second("Identity", ""), -4); }

}  // namespace
}  // namespace thalweg
