// Attribute values between the message on the wire (class AttrValue) and the graph's own form (Attr).
//
// All functions are pure. Nesting (functions with attributes with functions ...) is as deep as the parser let it be, at
// most LoadLimits::max_nesting.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/attrs.h"

namespace thalweg {

class AttrValue;  // the generated message; thalweg/attr_value.pb.h
class NameAttrList;

// InvalidArgument for an unknown element type, an impossible shape, or a tensor that does not fit its shape (L12). An
// AttrValue without any value gives std::monostate.
absl::StatusOr<Attr> DecodeAttr(const AttrValue& message);

// Decodes a serialized AttrValue. A large tensor content is not copied but referenced, and kept alive by `owner`,
// unless that is null. DataLoss if `bytes` is not an AttrValue nested at most `max_nesting` deep.
absl::StatusOr<Attr> DecodeAttrBytes(absl::string_view bytes, const std::shared_ptr<const void>& owner,
                                     int max_nesting);

void EncodeAttr(const Attr& attr, AttrValue* message);

}  // namespace thalweg
