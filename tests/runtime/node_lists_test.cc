#include "thalweg/runtime/node_lists.h"

#include <gtest/gtest.h>

namespace thalweg {
namespace {

NodeLists Diamond() {
  NodeLists lists;
  for (const std::vector<int32_t>& list : std::vector<std::vector<int32_t>>{{}, {0}, {0}, {1, 2}}) lists.Append(list);
  return lists;
}

TEST(NodeLists, KeepsEveryList) {
  const NodeLists lists = Diamond();
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_TRUE(lists[0].empty());
  EXPECT_EQ(lists[2], (std::vector<int32_t>{0}));
  EXPECT_EQ(lists[3], (std::vector<int32_t>{1, 2}));
}

TEST(NodeLists, ReversedListsWhereANodeStands) {
  const NodeLists reversed = Diamond().Reversed();
  ASSERT_EQ(reversed.size(), 4u);
  EXPECT_EQ(reversed[0], (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(reversed[1], (std::vector<int32_t>{3}));
  EXPECT_EQ(reversed[2], (std::vector<int32_t>{3}));
  EXPECT_TRUE(reversed[3].empty());
}

TEST(NodeLists, PermutedRenumbersNodesAndEntries) {
  const NodeLists permuted = Diamond().Permuted({0, 2, 1, 3}, {0, 2, 1, 3});
  EXPECT_EQ(permuted[1], (std::vector<int32_t>{0}));
  EXPECT_EQ(permuted[3], (std::vector<int32_t>{2, 1}));
}

TEST(NodeLists, NoNodes) {
  EXPECT_EQ(NodeLists().size(), 0u);
  EXPECT_EQ(NodeLists().Reversed().size(), 0u);
}

}  // namespace
}  // namespace thalweg
