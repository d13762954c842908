#include "thalweg/ops/common/onednn.h"

#include <omp.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "dnnl.hpp"

namespace thalweg::onednn {
namespace {

// Holds OpenMP to one thread on the calling thread and restores its setting. A primitive keeps the number of threads
// that it was created with, so creation needs this as much as execution.
class OneThread {
 public:
  OneThread() : saved_(omp_get_max_threads()) {
    if (saved_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (saved_ != 1) omp_set_num_threads(saved_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int saved_;
};

const dnnl::engine& Engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Streams hold no work between calls, but may not be shared by threads.
dnnl::stream& Stream() {
  thread_local dnnl::stream stream(Engine());
  return stream;
}

absl::Status FromError(const dnnl::error& e, absl::string_view what) {
  const std::string message = absl::StrCat("oneDNN could not ", what, ": ", e.message);
  switch (e.status) {
    case dnnl_unimplemented: return absl::UnimplementedError(message);
    case dnnl_out_of_memory: return absl::ResourceExhaustedError(message);
    default: return absl::InternalError(message);
  }
}

using Dims = dnnl::memory::dims;
constexpr auto kFloat = dnnl::memory::data_type::f32;

dnnl::memory::desc ImageDesc(const ConvProblem& p, int64_t channels, int64_t ConvProblem::Dim::*size) {
  Dims dims{p.batch, channels};
  for (int i = 0; i < p.spatial; ++i) dims.push_back(p.dims[i].*size);
  return {dims, kFloat, p.spatial == 2 ? dnnl::memory::format_tag::nhwc : dnnl::memory::format_tag::ndhwc};
}

Dims FilterDims(const ConvProblem& p) {
  Dims dims{p.out_channels / p.groups, p.in_channels / p.groups};
  if (p.groups > 1) dims.insert(dims.begin(), p.groups);
  for (int i = 0; i < p.spatial; ++i) dims.push_back(p.dims[i].window);
  return dims;
}

// The filter as the graph holds it: output channels innermost, then input channels, then the window.
dnnl::memory::desc PlainFilterDesc(const ConvProblem& p) {
  Dims strides{1, p.out_channels};
  if (p.groups > 1) strides.insert(strides.begin(), p.out_channels / p.groups);
  Dims window_strides;
  int64_t stride = p.in_channels / p.groups * p.out_channels;
  for (int i = p.spatial - 1; i >= 0; --i) {
    window_strides.insert(window_strides.begin(), stride);
    stride *= p.dims[i].window;
  }
  strides.insert(strides.end(), window_strides.begin(), window_strides.end());
  return {FilterDims(p), kFloat, strides};
}

template <typename F>
Dims PerDim(const ConvProblem& p, F f) {
  Dims values;
  for (int i = 0; i < p.spatial; ++i) values.push_back(f(p.dims[i]));
  return values;
}

dnnl::convolution_forward::primitive_desc DescribeConvolution(const ConvProblem& p, const dnnl::memory::desc& filter) {
  using Dim = ConvProblem::Dim;
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, ImageDesc(p, p.in_channels, &Dim::in),
      filter, ImageDesc(p, p.out_channels, &Dim::out), PerDim(p, [](const Dim& d) { return d.stride; }),
      PerDim(p, [](const Dim& d) { return d.dilation - 1; }), PerDim(p, [](const Dim& d) { return d.pad_before; }),
      PerDim(p, [](const Dim& d) { return d.pad_after; }));
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return {desc, attr, Engine()};
}

}  // namespace

absl::Status Sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                   const float* b, int64_t ldb, float* c, int64_t ldc) {
  const OneThread one_thread;
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc);
  if (status == dnnl_success) return absl::OkStatus();
  return FromError(dnnl::error(status, "dnnl_sgemm failed"), absl::StrCat("multiply ", m, "x", k, " by ", k, "x", n));
}

int64_t ConvProblem::Positions() const { return dims[0].out * dims[1].out * dims[2].out; }
int64_t ConvProblem::FilterTaps() const { return dims[0].window * dims[1].window * dims[2].window; }

struct Convolution::Impl {
  ConvProblem problem;
  dnnl::convolution_forward::primitive_desc desc;
  dnnl::convolution_forward primitive;
  std::string implementation;

  // Memory objects are made once and then only get other pointers; an execution has them to itself.
  struct Arguments {
    dnnl::memory in, filter, out, scratch;
    std::array<dnnl_exec_arg_t, 4> list;
  };
  std::mutex mutex;
  std::vector<std::unique_ptr<Arguments>> idle;

  std::unique_ptr<Arguments> TakeArguments();
  void ReturnArguments(std::unique_ptr<Arguments> arguments);
};

std::unique_ptr<Convolution::Impl::Arguments> Convolution::Impl::TakeArguments() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!idle.empty()) {
      std::unique_ptr<Arguments> arguments = std::move(idle.back());
      idle.pop_back();
      return arguments;
    }
  }
  auto made = std::make_unique<Arguments>();
  made->in = dnnl::memory(desc.src_desc(), Engine(), nullptr);
  made->filter = dnnl::memory(desc.weights_desc(), Engine(), nullptr);
  made->out = dnnl::memory(desc.dst_desc(), Engine(), nullptr);
  made->scratch = dnnl::memory(desc.scratchpad_desc(), Engine(), nullptr);
  made->list = {{{DNNL_ARG_SRC, made->in.get()},
                 {DNNL_ARG_WEIGHTS, made->filter.get()},
                 {DNNL_ARG_DST, made->out.get()},
                 {DNNL_ARG_SCRATCHPAD, made->scratch.get()}}};
  return made;
}

void Convolution::Impl::ReturnArguments(std::unique_ptr<Arguments> arguments) {
  std::lock_guard<std::mutex> lock(mutex);
  idle.push_back(std::move(arguments));
}

Convolution::Convolution(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Convolution::~Convolution() = default;

absl::StatusOr<std::shared_ptr<const Convolution>> Convolution::Create(const ConvProblem& problem,
                                                                       const Convolution* packed_like) {
  for (const ConvProblem::Dim& dim : problem.dims) {
    if (dim.pad_before < 0) return absl::UnimplementedError("oneDNN cannot skip the first pixels of an image");
  }
  const OneThread one_thread;
  try {
    const dnnl::memory::desc filter =
        packed_like ? packed_like->impl_->desc.weights_desc()
                    : dnnl::memory::desc(FilterDims(problem), kFloat, dnnl::memory::format_tag::any);
    auto impl = std::make_unique<Impl>();
    impl->problem = problem;
    impl->desc = DescribeConvolution(problem, filter);
    impl->implementation = impl->desc.impl_info_str();
    if (absl::StartsWith(impl->implementation, "ref"))
      return absl::UnimplementedError("oneDNN has only its reference convolution here");
    impl->primitive = dnnl::convolution_forward(impl->desc);
    return std::shared_ptr<const Convolution>(new Convolution(std::move(impl)));
  } catch (const dnnl::error& e) {
    return FromError(e, "compile a convolution");
  }
}

const std::string& Convolution::implementation() const { return impl_->implementation; }
int64_t Convolution::packed_bytes() const { return static_cast<int64_t>(impl_->desc.weights_desc().get_size()); }
int64_t Convolution::scratch_bytes() const { return static_cast<int64_t>(impl_->desc.scratchpad_desc().get_size()); }
bool Convolution::SamePacking(const Convolution& other) const {
  return impl_->desc.weights_desc() == other.impl_->desc.weights_desc();
}

absl::Status Convolution::Pack(const float* filter, void* packed) const {
  const OneThread one_thread;
  try {
    dnnl::memory from(PlainFilterDesc(impl_->problem), Engine(), const_cast<float*>(filter));
    dnnl::memory to(impl_->desc.weights_desc(), Engine(), packed);
    dnnl::reorder(from, to).execute(Stream(), from, to);
    return absl::OkStatus();
  } catch (const dnnl::error& e) {
    return FromError(e, "pack a filter");
  }
}

absl::Status Convolution::Run(const float* in, const void* packed, float* out, void* scratch) const {
  const OneThread one_thread;
  try {
    std::unique_ptr<Impl::Arguments> arguments = impl_->TakeArguments();
    arguments->in.set_data_handle(const_cast<float*>(in), Stream());
    // Setting the handle of a padded layout also writes the padding, so it is left alone where nothing changes.
    if (arguments->filter.get_data_handle() != packed)
      arguments->filter.set_data_handle(const_cast<void*>(packed), Stream());
    arguments->out.set_data_handle(out, Stream());
    arguments->scratch.set_data_handle(scratch, Stream());
    const dnnl_status_t status = dnnl_primitive_execute(
        impl_->primitive.get(), Stream().get(), static_cast<int>(arguments->list.size()), arguments->list.data());
    impl_->ReturnArguments(std::move(arguments));
    if (status != dnnl_success) throw dnnl::error(status, "execution failed");
    return absl::OkStatus();
  } catch (const dnnl::error& e) {
    return FromError(e, "run a convolution");
  }
}

}  // namespace thalweg::onednn
