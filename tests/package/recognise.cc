// The example of README.md: loads a graph, feeds an image, fetches a digit.
#include <cstdio>
#include <vector>

#include "thalweg/runtime/session.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto session = thalweg::Session::FromFile(argv[1]);
  if (!session.ok()) return std::printf("%s\n", session.status().ToString().c_str()), 1;

  std::vector<float> pixels(16 * 16, 0.0f);  // an upright stroke, as in the digit one
  for (int row = 1; row < 15; ++row) pixels[row * 16 + 7] = pixels[row * 16 + 8] = 1.0f;
  auto image = thalweg::Tensor::Of<float>(pixels, thalweg::Shape::Of({1, 16, 16, 1}));

  auto result = (*session)->Run({{"image", *image}}, {"digit", "prob"});
  if (!result.ok()) return std::printf("%s\n", result.status().ToString().c_str()), 1;
  std::printf("digit %s\nprob %s\n", (*result)[0].ToString().c_str(), (*result)[1].ToString().c_str());
}
