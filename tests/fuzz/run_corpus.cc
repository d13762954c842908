// Runs a fuzz target over files and, with --mutations N, over N garbled versions of each: a stand-in for libFuzzer with
// compilers that lack it, and the regression test of what fuzzing has found. Garbling is the same in every run.
//
//   loader_fuzz [--mutations N] FILE_OR_FOLDER...
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesBelow(const fs::path& root) {
  std::vector<fs::path> files;
  if (!fs::is_directory(root)) return {root};
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

void Run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

// One to four of: a byte changed, a bit flipped, a piece removed, a piece doubled, the end cut off.
std::string Garbled(std::string bytes, std::mt19937& random) {
  for (uint32_t change = random() % 4 + 1; change > 0 && !bytes.empty(); --change) {
    const size_t at = random() % bytes.size();
    const size_t length = std::min<size_t>(random() % 16 + 1, bytes.size() - at);
    switch (random() % 5) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 2: bytes.erase(at, length); break;
      case 3: bytes.insert(at, bytes.substr(at, length)); break;
      case 4: bytes.resize(at); break;
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  int mutations = 0;
  size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--mutations" && i + 1 < argc) {
      mutations = std::atoi(argv[++i]);
      continue;
    }
    for (const fs::path& path : FilesBelow(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      Run(bytes);
      std::mt19937 random(static_cast<uint32_t>(files));
      for (int m = 0; m < mutations; ++m) Run(Garbled(bytes, random));
      ++files;
    }
  }
  std::printf("%zu files, %d garbled versions of each\n", files, mutations);
  return files == 0;
}
