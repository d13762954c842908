// RegexFullMatch, RegexReplace and their static forms, whose pattern is an attribute and compiled once.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "re2/re2.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

// RE2 objects match from several threads at once. InvalidArgument if the pattern is none.
absl::StatusOr<std::unique_ptr<const RE2>> Compile(const std::string& pattern) {
  auto regex = std::make_unique<const RE2>(pattern, RE2::Quiet);
  if (regex->ok()) return regex;
  return absl::InvalidArgumentError(absl::StrCat("'", pattern, "' is no regular expression: ", regex->error()));
}

absl::StatusOr<std::string> TextArg(const Tensor& t, absl::string_view name) {
  THALWEG_RETURN_IF_ERROR(RequireScalar(t, name));
  return t.flat<std::string>()[0];
}

absl::Status FullMatch(KernelContext& ctx, const RE2& regex) {
  return MapStrings<bool>(ctx, [&](const std::string& text, bool* matches) {
    *matches = RE2::FullMatch(text, regex);
    return absl::OkStatus();
  });
}

// A rewrite that asks for groups which the pattern lacks changes nothing.
absl::Status Replace(KernelContext& ctx, const RE2& regex, const std::string& rewrite, bool all) {
  std::string problem;
  const bool valid = regex.CheckRewriteString(rewrite, &problem);
  return MapStrings<std::string>(ctx, [&](const std::string& text, std::string* replaced) {
    *replaced = text;
    if (!valid) return absl::OkStatus();
    if (all) RE2::GlobalReplace(replaced, regex, rewrite);
    else RE2::Replace(replaced, regex, rewrite);
    return absl::OkStatus();
  });
}

class RegexFullMatchKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const std::string pattern, TextArg(ctx.input(1), "pattern"));
    THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<const RE2> regex, Compile(pattern));
    return FullMatch(ctx, *regex);
  }
};

class StaticRegexFullMatchKernel final : public Kernel {
 public:
  explicit StaticRegexFullMatchKernel(std::unique_ptr<const RE2> regex) : regex_(std::move(regex)) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const std::string pattern, init.Attr<std::string>("pattern"));
    THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<const RE2> regex, Compile(pattern));
    return std::unique_ptr<Kernel>(std::make_unique<StaticRegexFullMatchKernel>(std::move(regex)));
  }
  absl::Status Compute(KernelContext& ctx) override { return FullMatch(ctx, *regex_); }

 private:
  const std::unique_ptr<const RE2> regex_;
};

class RegexReplaceKernel final : public Kernel {
 public:
  explicit RegexReplaceKernel(const KernelInit& init) : all_(init.node().node_attrs().GetOr<bool>("replace_global", true)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const std::string pattern, TextArg(ctx.input(1), "pattern"));
    THALWEG_ASSIGN_OR_RETURN(const std::string rewrite, TextArg(ctx.input(2), "rewrite"));
    THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<const RE2> regex, Compile(pattern));
    return Replace(ctx, *regex, rewrite, all_);
  }

 private:
  const bool all_;
};

class StaticRegexReplaceKernel final : public Kernel {
 public:
  StaticRegexReplaceKernel(std::unique_ptr<const RE2> regex, std::string rewrite, bool all)
      : regex_(std::move(regex)), rewrite_(std::move(rewrite)), all_(all) {}
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const std::string pattern, init.Attr<std::string>("pattern"));
    THALWEG_ASSIGN_OR_RETURN(std::string rewrite, init.Attr<std::string>("rewrite"));
    THALWEG_ASSIGN_OR_RETURN(const bool all, init.Attr<bool>("replace_global"));
    THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<const RE2> regex, Compile(pattern));
    return std::unique_ptr<Kernel>(std::make_unique<StaticRegexReplaceKernel>(std::move(regex), std::move(rewrite), all));
  }
  absl::Status Compute(KernelContext& ctx) override { return Replace(ctx, *regex_, rewrite_, all_); }

 private:
  const std::unique_ptr<const RE2> regex_;
  const std::string rewrite_;
  const bool all_;
};

// The pattern (and what comes after it) are scalars.
absl::Status MatchShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  return UnchangedShape(c);
}

}  // namespace

void RegisterRegexOps(OpLibrary& lib) {
  lib.schemas.Add("RegexFullMatch(input: string, pattern: string) -> output: bool").Shape(MatchShape).Cost(StringCost);
  lib.kernels.Add("RegexFullMatch", "cpu", &MakeKernel<RegexFullMatchKernel>);
  lib.schemas.Add("StaticRegexFullMatch(input: string) -> output: bool", "pattern: string").Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StaticRegexFullMatch", "cpu", &MakeFallibleKernel<StaticRegexFullMatchKernel>);
  lib.schemas.Add("RegexReplace(input: string, pattern: string, rewrite: string) -> output: string", "replace_global: bool = true")
      .Shape(MatchShape).Cost(StringCost);
  lib.kernels.Add("RegexReplace", "cpu", &MakeKernel<RegexReplaceKernel>);
  lib.schemas.Add("StaticRegexReplace(input: string) -> output: string",
                  "pattern: string; rewrite: string; replace_global: bool = true")
      .Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StaticRegexReplace", "cpu", &MakeFallibleKernel<StaticRegexReplaceKernel>);
}

}  // namespace thalweg::strings
