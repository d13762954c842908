#include "thalweg/tools/run_report.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/session_json.h"

namespace thalweg::tools {
namespace {

constexpr char kSchema[] = "thalweg.run/1";

// JSON has no NaN and no infinity: they are written as texts.
OrderedJson Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

template <typename T>
OrderedJson ElementJson(const T& value) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool> || std::is_integral_v<T>) return value;
  else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
    return OrderedJson::array({Number(value.real()), Number(value.imag())});
  else if constexpr (std::is_same_v<T, double>) return Number(value);
  else return Number(static_cast<double>(static_cast<float>(value)));
}

template <typename T>
OrderedJson ElementsOf(const Tensor& tensor, int64_t limit) {
  OrderedJson list = OrderedJson::array();
  const absl::Span<const T> values = tensor.flat<T>();
  for (size_t i = 0; i < values.size() && static_cast<int64_t>(i) < limit; ++i)
    list.push_back(ElementJson<T>(values[i]));
  return list;
}

// The first elements in row-major order; null for types without numbers (resources and variants).
OrderedJson ElementsJson(const Tensor& tensor, int64_t limit) {
  switch (tensor.dtype()) {
#define THALWEG_ELEMENTS_(T) \
  case DTypeOf<T>::value: return ElementsOf<T>(tensor, limit);
    THALWEG_ELEMENTS_(float)
    THALWEG_ELEMENTS_(double)
    THALWEG_ELEMENTS_(half)
    THALWEG_ELEMENTS_(bfloat16)
    THALWEG_ELEMENTS_(bool)
    THALWEG_ELEMENTS_(int8_t)
    THALWEG_ELEMENTS_(int16_t)
    THALWEG_ELEMENTS_(int32_t)
    THALWEG_ELEMENTS_(int64_t)
    THALWEG_ELEMENTS_(uint8_t)
    THALWEG_ELEMENTS_(uint16_t)
    THALWEG_ELEMENTS_(uint32_t)
    THALWEG_ELEMENTS_(uint64_t)
    THALWEG_ELEMENTS_(std::complex<float>)
    THALWEG_ELEMENTS_(std::complex<double>)
    THALWEG_ELEMENTS_(std::string)
#undef THALWEG_ELEMENTS_
    default: return nullptr;
  }
}

OrderedJson ValueJson(const FetchedValue& value, int64_t print_limit) {
  OrderedJson json;
  json["name"] = value.name;
  json["dtype"] = DTypeName(value.dtype);
  json["shape"] = std::vector<int64_t>(value.shape.dims().begin(), value.shape.dims().end());
  if (print_limit >= 0) json["values"] = ElementsJson(value.tensor, print_limit);
  return json;
}

const char* NumericsCheckText(NumericsCheck check) {
  switch (check) {
    case NumericsCheck::kOff: return "off";
    case NumericsCheck::kNaN: return "nan";
    case NumericsCheck::kNaNAndInf: return "nan,inf";
  }
  return "";
}

OrderedJson ConfigJson(const RunConfig& config) {
  OrderedJson json;
  json["graph"] = config.graph;
  json.update(SessionOptionsJson(config.session));
  json["timeout_ns"] = config.timeout_nanos;
  json["steps"] = config.repeats;
  json["inputs"] = config.inputs;
  json["init"] = config.init;
  json["check_numerics"] = NumericsCheckText(config.session.check_numerics);
  return json;
}

void AddStatus(const absl::Status& status, absl::string_view stage, OrderedJson* json) {
  (*json)["status"] = CodeName(status.code());
  if (status.ok()) return;
  (*json)["stage"] = std::string(stage);
  (*json)["message"] = std::string(status.message());
}

OrderedJson StepJson(const StepOutcome& step, size_t index, int64_t print_limit) {
  OrderedJson json;
  json["step"] = index;
  if (!step.name.empty()) json["name"] = step.name;
  AddStatus(step.status, step.stage, &json);
  json["wall_ns"] = step.nanos;
  json["outputs"] = OrderedJson::array();
  for (const FetchedValue& value : step.values) json["outputs"].push_back(ValueJson(value, print_limit));
  return json;
}

}  // namespace

std::string ValuesText(const std::vector<FetchedValue>& values, int64_t limit) {
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  for (const FetchedValue& value : values) table.AddRow({value.name, value.tensor.ToString(limit)});
  return table.ToString();
}

std::string RunDocument(const RunConfig& config, const std::vector<StepOutcome>& steps, bool is_script,
                        int64_t print_limit, int64_t peak_memory_bytes) {
  OrderedJson json;
  json["schema"] = kSchema;
  json["config"] = ConfigJson(config);
  const auto failed = std::find_if(steps.begin(), steps.end(), [](const StepOutcome& s) { return !s.status.ok(); });
  // Of a script each step has its own status; of a single step it is that of the whole.
  if (!is_script) AddStatus(failed == steps.end() ? absl::OkStatus() : failed->status, "run", &json);
  json["peak_memory_bytes"] = peak_memory_bytes;
  json["steps"] = OrderedJson::array();
  for (size_t i = 0; i < steps.size(); ++i) json["steps"].push_back(StepJson(steps[i], i, print_limit));
  return ToText(json);
}

std::string RefusalDocument(const RunConfig& config, const absl::Status& status) {
  OrderedJson json;
  json["schema"] = kSchema;
  json["config"] = ConfigJson(config);
  AddStatus(status, "load", &json);
  return ToText(json);
}

}  // namespace thalweg::tools
