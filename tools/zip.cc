#include "thalweg/tools/zip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/memory.h"

namespace thalweg::tools {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint32_t kDirectoryMark = 0x02014b50;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50;
constexpr uint32_t kLocator64Mark = 0x07064b50;
constexpr size_t kLocalBytes = 30, kDirectoryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint16_t kExtra64 = 1;
constexpr uint32_t kSeeExtra = 0xFFFFFFFF;
// Deflate turns at most 1032 bytes into one; slack for tiny inputs.
constexpr uint64_t kMaxExpansion = 1032;
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;

uint64_t Number(absl::string_view bytes, size_t at, int width) {
  uint64_t value = 0;
  for (int i = 0; i < width; ++i) value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}
uint16_t U16(absl::string_view b, size_t at) { return static_cast<uint16_t>(Number(b, at, 2)); }
uint32_t U32(absl::string_view b, size_t at) { return static_cast<uint32_t>(Number(b, at, 4)); }
uint64_t U64(absl::string_view b, size_t at) { return Number(b, at, 8); }

void Append(std::string* out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out->push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

bool Fits(uint64_t offset, uint64_t length, uint64_t size) { return offset <= size && length <= size - offset; }

uint32_t Crc(uint32_t crc, absl::string_view bytes) {
  while (!bytes.empty()) {
    const size_t n = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    crc = static_cast<uint32_t>(crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(n)));
    bytes.remove_prefix(n);
  }
  return crc;
}

// Inflates raw deflate data into `out`; false unless it fills exactly its size.
bool Inflate(absl::string_view data, std::string* out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  constexpr size_t kChunk = size_t{1} << 30;
  size_t read = 0, written = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0) {
      stream.avail_in = static_cast<uInt>(std::min(kChunk, data.size() - read));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + read));
      read += stream.avail_in;
    }
    const uInt room = static_cast<uInt>(std::min(kChunk, out->size() - written));
    Bytef spare = 0;  // zlib wants somewhere to write even when nothing may come any more
    stream.next_out = room > 0 ? reinterpret_cast<Bytef*>(out->data() + written) : &spare;
    stream.avail_out = room > 0 ? room : 1;
    const uInt offered = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    const size_t produced = offered - stream.avail_out;
    if (produced > room) break;
    written += produced;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END && written == out->size();
}

// The 64-bit values of a zip64 extra field, taken in order by those 32-bit fields that say "see there".
class Extra64 {
 public:
  explicit Extra64(absl::string_view extra) {
    while (extra.size() >= 4) {
      const size_t length = U16(extra, 2);
      if (length > extra.size() - 4) return;
      if (U16(extra, 0) == kExtra64) {
        values_ = extra.substr(4, length);
        return;
      }
      extra.remove_prefix(4 + length);
    }
  }
  bool Replace(uint64_t* field) {
    if (*field != kSeeExtra) return true;
    if (values_.size() < 8) return false;
    *field = U64(values_, 0);
    values_.remove_prefix(8);
    return true;
  }

 private:
  absl::string_view values_;
};

}  // namespace

absl::StatusOr<ZipReader> ZipReader::Open(FileContents file, std::string label) {
  ZipReader reader;
  reader.file_ = std::move(file);
  reader.label_ = std::move(label);
  THALWEG_RETURN_IF_ERROR(reader.ReadDirectory());
  return reader;
}

absl::Status ZipReader::ReadDirectory() {
  const absl::string_view bytes = file_.bytes;
  const auto broken = [&](absl::string_view what) {
    return absl::DataLossError(absl::StrCat(label_, ": broken zip archive: ", what));
  };
  if (bytes.size() < 4 || (U32(bytes, 0) != kLocalMark && U32(bytes, 0) != kEndMark)) {
    return absl::InvalidArgumentError(absl::StrCat(label_, ": not a zip archive (.npz)"));
  }
  if (bytes.size() < kEndBytes) return broken("too short");
  size_t end = bytes.size() - kEndBytes;
  const size_t lowest = end > 65535 ? end - 65535 : 0;
  while (U32(bytes, end) != kEndMark || !Fits(end + kEndBytes, U16(bytes, end + 20), bytes.size())) {
    if (end == lowest) return broken("no end record (is the file complete?)");
    --end;
  }
  uint64_t count = U16(bytes, end + 10), size = U32(bytes, end + 12), offset = U32(bytes, end + 16);
  uint64_t directory_end = end;
  if (end >= kLocator64Bytes && U32(bytes, end - kLocator64Bytes) == kLocator64Mark) {
    const uint64_t at = U64(bytes, end - kLocator64Bytes + 8);
    if (!Fits(at, kEnd64Bytes, bytes.size()) || U32(bytes, at) != kEnd64Mark) return broken("no zip64 end record");
    count = U64(bytes, at + 32);
    size = U64(bytes, at + 40);
    offset = U64(bytes, at + 48);
    directory_end = at;
  }
  if (!Fits(offset, size, directory_end)) return broken("its directory lies outside the file");
  if (count > size / kDirectoryBytes)
    return broken(absl::StrCat("a directory of ", count, " entries in ", size, " bytes"));
  size_t position = offset;
  for (uint64_t i = 0; i < count; ++i) THALWEG_RETURN_IF_ERROR(ReadEntry(&position, offset + size));
  return absl::OkStatus();
}

absl::Status ZipReader::ReadEntry(size_t* position, size_t end) {
  const absl::string_view bytes = file_.bytes;
  const auto broken = [&] {
    return absl::DataLossError(absl::StrCat(label_, ": broken zip archive: malformed directory entry"));
  };
  const size_t at = *position;
  if (!Fits(at, kDirectoryBytes, end) || U32(bytes, at) != kDirectoryMark) return broken();
  const size_t name_bytes = U16(bytes, at + 28), extra_bytes = U16(bytes, at + 30), comment_bytes = U16(bytes, at + 32);
  const size_t variable = name_bytes + extra_bytes + comment_bytes;
  if (!Fits(at + kDirectoryBytes, variable, end)) return broken();
  Entry entry;
  entry.name = std::string(bytes.substr(at + kDirectoryBytes, name_bytes));
  entry.flags = U16(bytes, at + 8);
  entry.method = U16(bytes, at + 10);
  entry.crc = U32(bytes, at + 16);
  entry.compressed = U32(bytes, at + 20);
  entry.size = U32(bytes, at + 24);
  entry.offset = U32(bytes, at + 42);
  Extra64 extra(bytes.substr(at + kDirectoryBytes + name_bytes, extra_bytes));
  if (!extra.Replace(&entry.size) || !extra.Replace(&entry.compressed) || !extra.Replace(&entry.offset))
    return broken();
  *position = at + kDirectoryBytes + variable;
  index_[entry.name] = entries_.size();
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (index_.at(entries_[i].name) == i) names.push_back(entries_[i].name);
  }
  return names;
}

absl::StatusOr<absl::string_view> ZipReader::CompressedData(const Entry& entry) const {
  const absl::string_view bytes = file_.bytes;
  const std::string where = absl::StrCat(label_, ": entry '", entry.name, "'");
  if (entry.flags & 1) return absl::UnimplementedError(absl::StrCat(where, " is encrypted"));
  if (entry.method != kStored && entry.method != kDeflated) {
    return absl::UnimplementedError(
        absl::StrCat(where, " is compressed with method ", entry.method, "; stored and deflated are supported"));
  }
  if (!Fits(entry.offset, kLocalBytes, bytes.size()) || U32(bytes, entry.offset) != kLocalMark) {
    return absl::DataLossError(absl::StrCat(where, " has no local header"));
  }
  const uint64_t start = entry.offset + kLocalBytes + U16(bytes, entry.offset + 26) + U16(bytes, entry.offset + 28);
  if (!Fits(start, entry.compressed, bytes.size()))
    return absl::DataLossError(absl::StrCat(where, " lies outside the file"));
  const bool plausible = entry.method == kStored
                             ? entry.size == entry.compressed
                             : entry.size / kMaxExpansion <= entry.compressed && entry.size < kMaxBytes;
  if (!plausible) {
    return absl::DataLossError(absl::StrCat(where, " claims ", entry.size, " bytes from ", entry.compressed));
  }
  return bytes.substr(start, entry.compressed);
}

absl::StatusOr<FileContents> ZipReader::Read(absl::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return absl::NotFoundError(absl::StrCat(label_, ": no entry '", name, "'"));
  const Entry& entry = entries_[found->second];
  THALWEG_ASSIGN_OR_RETURN(const absl::string_view data, CompressedData(entry));
  FileContents content{data, file_.owner};
  if (entry.method == kDeflated) {
    THALWEG_RETURN_IF_ERROR(
        CheckFitsMemory(static_cast<int64_t>(entry.size), absl::StrCat(label_, ": entry '", name, "'")));
    auto inflated = std::make_shared<std::string>(static_cast<size_t>(entry.size), '\0');
    if (!Inflate(data, inflated.get())) {
      return absl::DataLossError(
          absl::StrCat(label_, ": entry '", name, "' does not inflate to ", entry.size, " bytes"));
    }
    content.bytes = *inflated;
    content.owner = std::move(inflated);
  }
  if (Crc(0, content.bytes) != entry.crc) {
    return absl::DataLossError(absl::StrCat(label_, ": entry '", name, "' has a wrong checksum"));
  }
  return content;
}

absl::StatusOr<std::unique_ptr<ZipWriter>> ZipWriter::Create(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> out, OutputFile::Create(path));
  return std::unique_ptr<ZipWriter>(new ZipWriter(std::move(out)));
}

namespace {

constexpr uint16_t kVersion64 = 45;
constexpr uint16_t kUtf8Names = 1 << 11;
constexpr uint16_t kDosDate = 33;  // 1980-01-01: archives of equal content are equal files

// What local header and directory entry have in common, from the version needed up to the CRC and sizes.
std::string CommonFields(uint32_t crc, uint32_t size32, size_t name_bytes, size_t extra_bytes) {
  std::string fields;
  Append(&fields, kVersion64, 2);
  Append(&fields, kUtf8Names, 2);
  Append(&fields, kStored, 2);
  Append(&fields, 0, 2);
  Append(&fields, kDosDate, 2);
  Append(&fields, crc, 4);
  Append(&fields, size32, 4);
  Append(&fields, size32, 4);
  Append(&fields, name_bytes, 2);
  Append(&fields, extra_bytes, 2);
  return fields;
}

std::string Extra64Field(absl::Span<const uint64_t> values) {
  std::string extra;
  if (values.empty()) return extra;
  Append(&extra, kExtra64, 2);
  Append(&extra, values.size() * 8, 2);
  for (uint64_t v : values) Append(&extra, v, 8);
  return extra;
}

}  // namespace

absl::Status ZipWriter::Add(const std::string& name, absl::Span<const absl::string_view> parts) {
  if (name.size() > 65535)
    return absl::InvalidArgumentError(absl::StrCat("a name of ", name.size(), " bytes is too long for an archive"));
  Written entry{name, 0, 0, out_->position()};
  for (absl::string_view part : parts) {
    entry.crc = Crc(entry.crc, part);
    entry.size += part.size();
  }
  const bool large = entry.size >= kSeeExtra;
  const std::string extra = large ? Extra64Field({entry.size, entry.size}) : "";
  std::string header;
  Append(&header, kLocalMark, 4);
  absl::StrAppend(
      &header,
      CommonFields(entry.crc, large ? kSeeExtra : static_cast<uint32_t>(entry.size), name.size(), extra.size()), name,
      extra);
  THALWEG_RETURN_IF_ERROR(out_->Write(header));
  for (absl::string_view part : parts) THALWEG_RETURN_IF_ERROR(out_->Write(part));
  written_.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status ZipWriter::Finish() {
  const uint64_t start = out_->position();
  for (const Written& entry : written_) {
    const bool large = entry.size >= kSeeExtra, far = entry.offset >= kSeeExtra;
    std::vector<uint64_t> values;
    if (large) values = {entry.size, entry.size};
    if (far) values.push_back(entry.offset);
    const std::string extra = Extra64Field(values);
    std::string record;
    Append(&record, kDirectoryMark, 4);
    Append(&record, kVersion64, 2);
    absl::StrAppend(&record, CommonFields(entry.crc, large ? kSeeExtra : static_cast<uint32_t>(entry.size),
                                          entry.name.size(), extra.size()));
    record.append(10, '\0');  // comment, disk, attributes
    Append(&record, far ? kSeeExtra : entry.offset, 4);
    THALWEG_RETURN_IF_ERROR(out_->Write(absl::StrCat(record, entry.name, extra)));
  }
  const uint64_t size = out_->position() - start;
  const bool needs64 = written_.size() >= 0xFFFF || start >= kSeeExtra || size >= kSeeExtra;
  std::string tail;
  if (needs64) {
    const uint64_t end64 = out_->position();
    Append(&tail, kEnd64Mark, 4);
    Append(&tail, kEnd64Bytes - 12, 8);
    Append(&tail, kVersion64, 2);
    Append(&tail, kVersion64, 2);
    Append(&tail, 0, 8);  // disks
    Append(&tail, written_.size(), 8);
    Append(&tail, written_.size(), 8);
    Append(&tail, size, 8);
    Append(&tail, start, 8);
    Append(&tail, kLocator64Mark, 4);
    Append(&tail, 0, 4);
    Append(&tail, end64, 8);
    Append(&tail, 1, 4);
  }
  const uint64_t count16 = needs64 ? 0xFFFF : written_.size();
  Append(&tail, kEndMark, 4);
  Append(&tail, 0, 4);  // disks
  Append(&tail, count16, 2);
  Append(&tail, count16, 2);
  Append(&tail, needs64 ? kSeeExtra : size, 4);
  Append(&tail, needs64 ? kSeeExtra : start, 4);
  Append(&tail, 0, 2);  // comment
  THALWEG_RETURN_IF_ERROR(out_->Write(tail));
  return out_->Commit();
}

}  // namespace thalweg::tools
