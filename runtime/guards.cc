#include "thalweg/runtime/guards.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace thalweg {

namespace {

// Longest walk through implied guards; beyond it two guards count as unrelated, which costs tests but is never wrong.
constexpr int kMostImplicationSteps = 32;
// More alternatives or conditions than this are not compared with each other.
constexpr size_t kMostCompared = 16;
// Bounds on the whole analysis, per node: structured graphs need a small part of it.
constexpr int64_t kMostWorkPerNode = 2000;
constexpr int64_t kMostFlagsPerNode = 16;
constexpr int64_t kWorkForAnyGraph = 1'000'000;
// Assumptions about loops are dropped and the analysis repeated at most this often before none is made.
constexpr int kMostAttempts = 4;

// What is assumed of a frame while its nodes are analysed, and checked afterwards.
struct Assumptions {
  bool merges_live = true;  // all Merges of the loop are live in every iteration that exists
  bool exits_live = true;   // the loop ends only with all its Exits live
};

class GuardFinder {
 public:
  GuardFinder(const FlowGraph& graph, std::vector<Assumptions>& assumptions) : graph_(graph), assumptions_(assumptions) {}

  // False if an assumption proved wrong; it is then dropped. True with table->too_complex if the bounds were reached.
  bool Attempt(GuardTable* table) {
    table_ = table;
    table->guards.assign(1, Guard());
    table->of_node.assign(graph_.nodes.size(), kAlways);
    table->of_block.assign(graph_.frames.size(), kAlways);
    table->flag_of_node.assign(graph_.nodes.size(), kAlways);
    table->branch_flags.assign(graph_.nodes.size(), {});
    out_guard_.assign(graph_.nodes.size(), kAlways);
    FindFirstEnters();
    const int64_t num_nodes = static_cast<int64_t>(graph_.nodes.size());
    for (int32_t id = 0; id < num_nodes; ++id) {
      Visit(id);
      table->too_complex = work_ > kWorkForAnyGraph + kMostWorkPerNode * num_nodes || flags_listed_ > kWorkForAnyGraph + kMostFlagsPerNode * num_nodes;
      if (table->too_complex) return true;
    }
    bool held = true;
    for (size_t f = 1; f < graph_.frames.size(); ++f) {
      table->of_block[f] = BlockGuard(f);
      held &= CheckAssumptions(f);
    }
    return held;
  }

 private:
  const FlowNode& node(int32_t id) const { return graph_.nodes[id]; }
  Guard& guard(GuardId id) { return table_->guards[id]; }

  void Visit(int32_t id) {
    const FlowNode& n = node(id);
    if (n.role == OpRole::kMerge) {
      VisitMerge(id);
      return;
    }
    const GuardId live = n.role == OpRole::kControlTrigger ? kAlways : GuardOfInputs(n);
    table_->of_node[id] = out_guard_[id] = live;
    if (n.role == OpRole::kSwitch) VisitSwitch(id, live);
    if (n.role == OpRole::kExit && n.frame != kRootFrame) VisitExit(id);
    if (n.role == OpRole::kEnter && !n.is_constant_enter) VisitEnter(id, live);
  }

  GuardId GuardOfInputs(const FlowNode& n) {
    std::vector<GuardId> guards;
    for (Endpoint e : n.data) guards.push_back(EdgeGuard(e));
    for (int32_t control : n.controls) guards.push_back(out_guard_[control]);
    return All(std::move(guards));
  }

  GuardId EdgeGuard(Endpoint e) const {
    const std::vector<GuardId>& branches = table_->branch_flags[e.node];
    return branches.empty() ? out_guard_[e.node] : branches[e.port];
  }

  GuardId NewGuard(Guard g) {
    table_->guards.push_back(std::move(g));
    return static_cast<GuardId>(table_->guards.size()) - 1;
  }

  GuardId NewFlag(GuardId parent) {
    Guard g;
    g.parent = parent;
    return NewGuard(std::move(g));
  }

  // The predicate behind nodes that only hand it on.
  Endpoint PredicateSource(Endpoint e) const {
    while (node(e.node).hands_input_on) e = node(e.node).data[0];
    return e;
  }

  void VisitSwitch(int32_t id, GuardId live) {
    const FlowNode& n = node(id);
    const Endpoint predicate = PredicateSource(n.data[1]);
    for (int32_t branch = 0; branch < n.num_outputs; ++branch) {
      const auto key = std::make_tuple(predicate, branch, n.num_outputs, live);
      const auto [it, added] = branches_.try_emplace(key, kAlways);
      if (added) {
        Guard g;
        g.parent = live;
        g.predicate = predicate;
        g.branch = branch;
        g.branches = n.num_outputs;
        it->second = NewGuard(std::move(g));
      }
      table_->branch_flags[id].push_back(it->second);
    }
  }

  // What reads an Enter beside a Merge gets its value in the first iteration only (A38).
  void VisitEnter(int32_t id, GuardId live) { table_->flag_of_node[id] = out_guard_[id] = NewFlag(live); }

  void VisitExit(int32_t id) {
    const int32_t frame = node(id).frame;
    const GuardId around = EnterGuard(frame);
    if (assumptions_[frame].exits_live) {
      out_guard_[id] = around;
    } else {
      table_->flag_of_node[id] = out_guard_[id] = NewFlag(kAlways);
    }
  }

  // By frame: the first Enter whose value is carried from iteration to iteration (any Enter if there is none). Being first, it
  // has been visited before any node of the frame that depends on such a value.
  void FindFirstEnters() {
    first_enter_.assign(graph_.frames.size(), -1);
    for (size_t f = 1; f < graph_.frames.size(); ++f) {
      for (NodeId enter : graph_.frames[f].enters) {
        int32_t& first = first_enter_[f];
        const bool carried = !node(enter).is_constant_enter;
        const bool first_is_carried = first >= 0 && !node(first).is_constant_enter;
        if (first < 0 || carried > first_is_carried || (carried == first_is_carried && enter < first)) first = enter;
      }
    }
  }

  GuardId EnterGuard(int32_t frame) const { return table_->of_node[first_enter_[frame]]; }

  static bool IsFrom(const FlowGraph& graph, Endpoint e, OpRole role) { return graph.nodes[e.node].role == role; }

  bool IsLoopMerge(const FlowNode& n) const {
    return std::any_of(n.data.begin(), n.data.end(), [&](Endpoint e) { return IsFrom(graph_, e, OpRole::kNextIteration); });
  }

  // One value from outside, one from the iteration before.
  bool IsPlainLoopMerge(const FlowNode& n) const {
    if (n.data.size() != 2) return false;
    const int enter = IsFrom(graph_, n.data[0], OpRole::kEnter) ? 0 : 1;
    return IsFrom(graph_, n.data[enter], OpRole::kEnter) && !node(n.data[enter].node).is_constant_enter &&
           IsFrom(graph_, n.data[1 - enter], OpRole::kNextIteration);
  }

  void VisitMerge(int32_t id) {
    const FlowNode& n = node(id);
    const bool loop = IsLoopMerge(n);
    GuardId live = kAlways;
    if (loop && assumptions_[n.frame].merges_live) {
      live = EnterGuard(n.frame);
    } else if (!loop && SimplifyChoice(n, &live)) {
      // Known by its inputs.
    } else {
      live = NewFlag(loop ? kAlways : CommonImplied(n));
      table_->flag_of_node[id] = live;
    }
    // The node itself is looked at whenever its iteration runs, but for what is implied.
    table_->of_node[id] = table_->flag_of_node[id] == kAlways ? live : guard(live).parent;
    out_guard_[id] = live;
  }

  // A choice between guards, where it comes down to one guard: all branches of one predicate are the guard around them.
  bool SimplifyChoice(const FlowNode& n, GuardId* result) {
    std::vector<GuardId> choices;
    for (Endpoint e : n.data) choices.push_back(EdgeGuard(e));
    while (true) {
      RemoveStronger(&choices);
      if (choices.size() == 1) break;
      if (!JoinBranches(&choices)) return false;
    }
    *result = choices[0];
    return true;
  }

  void RemoveStronger(std::vector<GuardId>* choices) const {
    std::sort(choices->begin(), choices->end());
    choices->erase(std::unique(choices->begin(), choices->end()), choices->end());
    if (choices->size() > kMostCompared) return;
    std::vector<GuardId> kept;
    for (GuardId g : *choices) {
      const bool stronger = std::any_of(choices->begin(), choices->end(), [&](GuardId other) { return other != g && Implies(g, other); });
      if (!stronger) kept.push_back(g);
    }
    *choices = std::move(kept);
  }

  bool JoinBranches(std::vector<GuardId>* choices) {
    work_ += static_cast<int64_t>(choices->size());
    std::map<std::tuple<Endpoint, GuardId, int32_t>, std::vector<GuardId>> groups;
    for (GuardId g : *choices) {
      const Guard& b = guard(g);
      if (b.branches == 0) continue;
      std::vector<GuardId>& group = groups[{b.predicate, b.parent, b.branches}];
      group.push_back(g);
      if (static_cast<int32_t>(group.size()) < b.branches) continue;
      const GuardId around = b.parent;
      for (GuardId member : group) choices->erase(std::find(choices->begin(), choices->end(), member));
      choices->push_back(around);
      return true;
    }
    return false;
  }

  // The strongest guard that holds whichever input arrives.
  GuardId CommonImplied(const FlowNode& n) const {
    GuardId common = EdgeGuard(n.data[0]);
    for (int step = 0; step < kMostImplicationSteps && common != kAlways; ++step) {
      const bool by_all = std::all_of(n.data.begin(), n.data.end(), [&](Endpoint e) { return Implies(EdgeGuard(e), common); });
      if (by_all) return common;
      common = table_->guards[common].parent;
    }
    return kAlways;
  }

  // True only if `strong` cannot hold without `weak`.
  bool Implies(GuardId strong, GuardId weak) const {
    const Guard& w = table_->guards[weak];
    for (int step = 0; step < kMostImplicationSteps; ++step) {
      ++work_;
      if (strong == weak || weak == kAlways) return true;
      if (strong == kAlways) return false;
      const Guard& s = table_->guards[strong];
      work_ += static_cast<int64_t>(s.all.size());
      if (!s.all.empty() && std::find(s.all.begin(), s.all.end(), weak) != s.all.end()) return true;
      if (s.branches > 0 && w.branches == s.branches && w.branch == s.branch && w.predicate == s.predicate && w.parent == kAlways) return true;
      strong = s.parent;
    }
    return false;
  }

  GuardId All(std::vector<GuardId> guards) {
    std::vector<GuardId> flags;
    for (GuardId g : guards) {
      const Guard& member = guard(g);
      if (member.all.empty()) flags.push_back(g);
      else flags.insert(flags.end(), member.all.begin(), member.all.end());
    }
    std::sort(flags.begin(), flags.end());
    flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
    work_ += static_cast<int64_t>(flags.size());
    if (flags.size() <= kMostCompared) {
      std::vector<GuardId> kept;
      for (GuardId g : flags) {
        const bool implied = std::any_of(flags.begin(), flags.end(), [&](GuardId other) { return other != g && Implies(other, g); });
        if (!implied) kept.push_back(g);
      }
      flags = std::move(kept);
    }
    if (flags.empty()) return kAlways;
    if (flags.size() == 1) return flags[0];
    const auto [it, added] = all_.try_emplace(flags, kAlways);
    if (added) {
      flags_listed_ += static_cast<int64_t>(flags.size());
      Guard g;
      g.parent = flags[0];
      g.all = flags;
      it->second = NewGuard(std::move(g));
    }
    return it->second;
  }

  // A frame has something to run if one of its Enters is live.
  GuardId BlockGuard(size_t frame) {
    std::vector<GuardId> choices;
    for (NodeId enter : graph_.frames[frame].enters) choices.push_back(table_->of_node[enter]);
    RemoveStronger(&choices);
    // Where Enters differ, the block is entered in any case: what is dead in it is skipped there.
    return choices.size() == 1 ? choices[0] : kAlways;
  }

  bool CheckAssumptions(size_t frame) {
    Assumptions& assumed = assumptions_[frame];
    if (frame == 1 || !loops_listed_) ListLoops();
    if (assumed.merges_live && !MergesAreLive(frame)) {
      assumed = {false, false};
      return false;
    }
    if (assumed.exits_live && !ExitsAreLive(frame)) {
      assumed.exits_live = false;
      return false;
    }
    return true;
  }

  void ListLoops() {
    loops_listed_ = true;
    next_iterations_.assign(graph_.frames.size(), {});
    odd_merge_.assign(graph_.frames.size(), false);
    for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes.size()); ++id) {
      const FlowNode& n = node(id);
      if (n.role == OpRole::kNextIteration) next_iterations_[n.frame].push_back(id);
      if (n.role == OpRole::kMerge && IsLoopMerge(n) && !IsPlainLoopMerge(n)) odd_merge_[n.frame] = true;
    }
  }

  // By induction: the Merges are live in the first iteration if the Enters are, and all NextIterations are live or none is.
  bool MergesAreLive(size_t frame) const {
    if (odd_merge_[frame]) return false;
    const GuardId around = EnterGuard(static_cast<int32_t>(frame));
    for (NodeId enter : graph_.frames[frame].enters) {
      if (!node(enter).is_constant_enter && table_->of_node[enter] != around) return false;
    }
    const std::vector<int32_t>& nexts = next_iterations_[frame];
    return std::all_of(nexts.begin(), nexts.end(), [&](int32_t n) { return table_->of_node[n] == table_->of_node[nexts[0]]; });
  }

  // The last iteration is the one in which the loop's predicate chose the other branch.
  bool ExitsAreLive(size_t frame) const {
    const std::vector<int32_t>& nexts = next_iterations_[frame];
    if (nexts.empty()) return false;
    const Guard& next = table_->guards[table_->of_node[nexts[0]]];
    if (next.branches != 2 || next.parent != EnterGuard(static_cast<int32_t>(frame))) return false;
    return std::all_of(graph_.frames[frame].exits.begin(), graph_.frames[frame].exits.end(), [&](NodeId exit) {
      const Guard& g = table_->guards[table_->of_node[exit]];
      return g.branches == 2 && g.predicate == next.predicate && g.parent == next.parent && g.branch != next.branch;
    });
  }

  const FlowGraph& graph_;
  std::vector<Assumptions>& assumptions_;
  GuardTable* table_ = nullptr;
  std::vector<GuardId> out_guard_;  // by node: of its outputs (but a Switch's data) and its control edges
  std::map<std::tuple<Endpoint, int32_t, int32_t, GuardId>, GuardId> branches_;
  std::map<std::vector<GuardId>, GuardId> all_;
  std::vector<int32_t> first_enter_;   // by frame
  std::vector<std::vector<int32_t>> next_iterations_;  // by frame
  std::vector<bool> odd_merge_;                        // by frame: a loop Merge of another form
  bool loops_listed_ = false;
  mutable int64_t work_ = 0;
  int64_t flags_listed_ = 0;
};

}  // namespace

GuardId GuardTable::OfEdge(const FlowGraph& graph, Endpoint data) const {
  return graph.nodes[data.node].role == OpRole::kConstant ? of_node[data.node] : kNoGuard;
}

GuardTable FindGuards(const FlowGraph& graph) {
  std::vector<Assumptions> assumptions(graph.frames.size());
  GuardTable table;
  for (int attempt = 1; !GuardFinder(graph, assumptions).Attempt(&table); ++attempt) {
    if (attempt == kMostAttempts) std::fill(assumptions.begin(), assumptions.end(), Assumptions{false, false});
  }
  return table;
}

}  // namespace thalweg
