#include "thalweg/graph/nesting.h"

#include <cstdint>
#include <vector>

#include "thalweg/graph/wire_reader.h"

namespace thalweg {
namespace {

enum class Kind : uint8_t { kAttrValue, kList, kNameAttrList, kAttrEntry, kTensor, kVariant, kFunction, kArgEntry, kArgAttrs, kNode,
                            kFullType };

// The fields through which messages hold messages without end.
struct NestingField {
  Kind holder;
  uint32_t number;
  Kind held;
};
constexpr NestingField kFields[] = {
    {Kind::kAttrValue, 1, Kind::kList},       {Kind::kAttrValue, 8, Kind::kTensor}, {Kind::kAttrValue, 10, Kind::kNameAttrList},
    {Kind::kList, 8, Kind::kTensor},          {Kind::kList, 9, Kind::kNameAttrList}, {Kind::kNameAttrList, 2, Kind::kAttrEntry},
    {Kind::kAttrEntry, 2, Kind::kAttrValue},  {Kind::kTensor, 15, Kind::kVariant},  {Kind::kVariant, 3, Kind::kTensor},
    {Kind::kFunction, 5, Kind::kAttrEntry},   {Kind::kFunction, 7, Kind::kArgEntry}, {Kind::kArgEntry, 2, Kind::kArgAttrs},
    {Kind::kArgAttrs, 1, Kind::kAttrEntry},   {Kind::kFunction, 3, Kind::kNode},    {Kind::kNode, 5, Kind::kAttrEntry},
    {Kind::kNode, 7, Kind::kFullType},        {Kind::kFullType, 2, Kind::kFullType}};

Kind KindOf(NestedMessage message) {
  switch (message) {
    case NestedMessage::kAttrValue: return Kind::kAttrValue;
    case NestedMessage::kFunction: return Kind::kFunction;
    case NestedMessage::kFullType: return Kind::kFullType;
  }
  return Kind::kAttrValue;
}

}  // namespace

bool NestsDeeperThan(absl::string_view bytes, NestedMessage message, int limit) {
  struct Level {
    Kind kind;
    WireReader reader;
  };
  std::vector<Level> levels;
  levels.push_back({KindOf(message), WireReader(bytes)});
  while (!levels.empty()) {
    WireField field;
    if (!levels.back().reader.Next(&field)) {
      if (!levels.back().reader.status().ok()) return false;
      levels.pop_back();
      continue;
    }
    if (field.type != WireType::kBytes) continue;
    for (const NestingField& nesting : kFields) {
      if (nesting.holder != levels.back().kind || nesting.number != field.number) continue;
      if (static_cast<int>(levels.size()) > limit) return true;
      levels.push_back({nesting.held, WireReader(field.bytes)});
      break;
    }
  }
  return false;
}

}  // namespace thalweg
