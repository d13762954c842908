// oneTBB's flow graph for tests/bench/run.py: continue_nodes with empty bodies in the shape of a workload.
//
//   bench_tbb THREADS
//
// Lines on standard input, as tests/bench/micro_server.cc takes them:
//   load NAME PATH ...     PATH: per node a line of the nodes it waits for   -> "ok LOAD_NS"
//   run NAME COUNT         COUNT steps                                       -> "ns N"
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

struct Workload {
  tbb::flow::graph graph;
  std::deque<Node> nodes;
  std::vector<Node*> sources;
};

void Load(const std::string& path, Workload* workload) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    Node& node = workload->nodes.emplace_back(workload->graph, [](const tbb::flow::continue_msg& message) { return message; });
    std::istringstream before(line);
    size_t predecessor = 0;
    bool is_source = true;
    for (; before >> predecessor; is_source = false) tbb::flow::make_edge(workload->nodes[predecessor], node);
    if (is_source) workload->sources.push_back(&node);
  }
}

void Step(Workload& workload) {
  for (Node* source : workload.sources) source->try_put(tbb::flow::continue_msg());
  workload.graph.wait_for_all();
}

}  // namespace

int main(int argc, char** argv) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, argc > 1 ? std::stoul(argv[1]) : 1);
  std::map<std::string, Workload> workloads;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string verb, name;
    in >> verb >> name;
    const auto begin = Clock::now();
    if (verb == "load") {
      std::string path;
      in >> path;
      Load(path, &workloads[name]);
    } else {
      int64_t count = 0;
      in >> count;
      for (int64_t i = 0; i < count; ++i) Step(workloads.at(name));
    }
    std::cout << (verb == "load" ? "ok " : "ns ") << std::chrono::nanoseconds(Clock::now() - begin).count() << std::endl;
  }
}
