#include "thalweg/devices/allocator.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/devices/large_block_cache.h"
#include "thalweg/devices/small_block_cache.h"
#include "thalweg/devices/text_memory.h"
#include "thalweg/devices/thread_counter.h"

namespace thalweg {
namespace {

// What a request is charged: whole cache lines, and one for the buffer that describes them, so that many empty buffers are not
// free of charge, nor does what a process holds pass a limit that a multiple of the request meets exactly.
int64_t ChargeOf(int64_t bytes) {
  constexpr int64_t kLine = kBufferAlignment;
  return (bytes + 2 * kLine - 1) / kLine * kLine;
}

constexpr int64_t kLargestRequest = int64_t{1} << 47;  // more than a process can address

// Free memory that an allocator holds back at most; never more than its budget allows to be in use.
int64_t CacheLimit(const MemoryBudget& budget) {
  constexpr int64_t kMostCached = int64_t{512} << 20;
  return budget.limit() > 0 ? std::min(kMostCached, budget.limit()) : kMostCached;
}

inline void RaiseTo(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < value && !peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

// The bytes of one holder, plus kHolder while the holder has not closed the account: so the change of one number says
// when the last of both has gone.
class alignas(kBufferAlignment) MemoryBudget::Account {
 public:
  static constexpr int64_t kHolder = int64_t{1} << 62;
  static constexpr int64_t kBytesMask = kHolder - 1;

  std::atomic<int64_t> state{kHolder};
  std::atomic<int64_t> peak{0};
  Account* next = nullptr;
};

MemoryBudget::MemoryBudget(int64_t limit_bytes) : limit_(limit_bytes), own_(&OpenAccount()) {}

MemoryBudget::~MemoryBudget() {
  Account* account = accounts_.load(std::memory_order_acquire);
  while (account != nullptr) delete std::exchange(account, account->next);
}

MemoryBudget::Account& MemoryBudget::OpenAccount() {
  auto* account = new Account;
  account->next = accounts_.load(std::memory_order_relaxed);
  while (
      !accounts_.compare_exchange_weak(account->next, account, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return *account;
}

bool MemoryBudget::Reserve(int64_t bytes, Account& account) {
  // Sequentially consistent, as are the reads of in_use: of two holders that reserve at once, at least one sees both.
  const int64_t own = account.state.fetch_add(bytes, std::memory_order_seq_cst) + bytes;
  const int64_t total = in_use();
  if (limit_ > 0 && total > limit_) {
    account.state.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  RaiseTo(account.peak, own & Account::kBytesMask);
  RaiseTo(peak_, total);
  return true;
}

void MemoryBudget::Release(int64_t bytes) { own_->state.fetch_sub(bytes, std::memory_order_relaxed); }

bool MemoryBudget::Release(int64_t bytes, Account& account) {
  return account.state.fetch_sub(bytes, std::memory_order_acq_rel) == bytes;
}

bool MemoryBudget::CloseAccount(Account& account) { return Release(Account::kHolder, account); }

int64_t MemoryBudget::InUse(const Account& account) {
  return account.state.load(std::memory_order_relaxed) & Account::kBytesMask;
}

int64_t MemoryBudget::Peak(const Account& account) { return account.peak.load(std::memory_order_relaxed); }

int64_t MemoryBudget::in_use() const {
  int64_t total = 0;
  for (const Account* account = accounts_.load(std::memory_order_acquire); account != nullptr;
       account = account->next) {
    total += account->state.load(std::memory_order_seq_cst) & Account::kBytesMask;
  }
  return total;
}

namespace {

// What buffers need when they are freed. It outlives its allocator while there are buffers, so that a fetched tensor
// may be kept longer than the session that made it.
class HostArena {
 public:
  explicit HostArena(std::shared_ptr<MemoryBudget> budget)
      : budget_(std::move(budget)), account_(budget_->OpenAccount()), large_(CacheLimit(*budget_)) {}

  // False if the budget's limit would be passed.
  bool Charge(int64_t bytes) { return budget_->Reserve(bytes, account_); }

  void Discharge(int64_t bytes) {
    if (budget_->Release(bytes, account_)) delete this;
  }

  void OwnerGone() {
    large_.Trim();
    if (budget_->CloseAccount(account_)) delete this;
  }

  void CountAllocation() { allocations_.Increment(); }

  const MemoryBudget& budget() const { return *budget_; }
  LargeBlockCache& large() { return large_; }
  MemoryLog& log() { return log_; }
  AllocatorStats stats() const {
    return {.bytes_in_use = MemoryBudget::InUse(account_),
            .peak_bytes = MemoryBudget::Peak(account_),
            .allocations = allocations_.Value()};
  }

 private:
  const std::shared_ptr<MemoryBudget> budget_;
  MemoryBudget::Account& account_;
  ThreadCounter allocations_;
  LargeBlockCache large_;
  MemoryLog log_;
};

// Header and bytes in one small block: the bytes begin one alignment unit after the header.
class SmallBuffer final : public Buffer {
 public:
  static constexpr size_t kHeader = kBufferAlignment;
  static constexpr int64_t kMaxBytes = kMaxSmallBlock - kHeader;

  static BufferRef Make(HostArena* arena, int64_t bytes, int32_t node_id) {
    void* block = TakeSmallBlock(kHeader + bytes);
    return block ? BufferRef(new (block) SmallBuffer(arena, bytes, node_id)) : BufferRef();
  }

  // Found by `delete this` of the base: runs the destructor, then returns the block instead of freeing it.
  static void operator delete(SmallBuffer* buffer, std::destroying_delete_t) {
    HostArena* arena = buffer->arena_;
    const size_t bytes = buffer->bytes();
    arena->log().Record(-static_cast<int64_t>(bytes), buffer->node_id());
    buffer->~SmallBuffer();
    ReturnSmallBlock(buffer, kHeader + bytes);
    arena->Discharge(ChargeOf(static_cast<int64_t>(bytes)));
  }

 private:
  SmallBuffer(HostArena* arena, int64_t bytes, int32_t node_id)
      : Buffer(reinterpret_cast<char*>(this) + kHeader, bytes, MemoryKind::kHost, node_id), arena_(arena) {}

  HostArena* const arena_;
};
static_assert(sizeof(SmallBuffer) <= SmallBuffer::kHeader);

class LargeBuffer final : public Buffer {
 public:
  static BufferRef Make(HostArena* arena, int64_t bytes, int32_t node_id) {
    void* block = arena->large().Take(bytes);
    return block ? BufferRef(new LargeBuffer(arena, block, bytes, node_id)) : BufferRef();
  }

 private:
  LargeBuffer(HostArena* arena, void* block, int64_t bytes, int32_t node_id)
      : Buffer(block, bytes, MemoryKind::kHost, node_id), arena_(arena) {}
  ~LargeBuffer() override {
    arena_->log().Record(-static_cast<int64_t>(bytes()), node_id());
    arena_->large().Return(data(), bytes());
    arena_->Discharge(ChargeOf(static_cast<int64_t>(bytes())));
  }

  HostArena* const arena_;
};

// A charge for memory that lies elsewhere.
class ChargeBuffer final : public Buffer {
 public:
  ChargeBuffer(HostArena* arena, int64_t bytes, int32_t node_id)
      : Buffer(nullptr, static_cast<size_t>(bytes), MemoryKind::kHost, node_id, /*writable=*/false), arena_(arena) {}

 private:
  ~ChargeBuffer() override {
    arena_->log().Record(-static_cast<int64_t>(bytes()), node_id());
    arena_->Discharge(ChargeOf(static_cast<int64_t>(bytes())));
  }

  HostArena* const arena_;
};

class HostAllocator final : public Allocator {
 public:
  HostAllocator(std::string name, std::shared_ptr<MemoryBudget> budget)
      : name_(std::move(name)), arena_(new HostArena(std::move(budget))) {}
  ~HostAllocator() override { arena_->OwnerGone(); }

  absl::string_view name() const override { return name_; }
  MemoryKind memory() const override { return MemoryKind::kHost; }
  AllocatorStats stats() const override { return arena_->stats(); }
  MemoryLog& memory_log() override { return arena_->log(); }
  void Trim() override { arena_->large().Trim(); }

  absl::StatusOr<BufferRef> Allocate(int64_t bytes, int32_t node_id) override {
    if (bytes < 0 || bytes > kLargestRequest) return BadSize(bytes);
    const int64_t charge = ChargeOf(bytes);
    if (!arena_->Charge(charge)) return OverLimit(bytes);
    if (bytes > SmallBuffer::kMaxBytes) KeepWithinLimit();
    BufferRef buffer = bytes <= SmallBuffer::kMaxBytes ? SmallBuffer::Make(arena_, bytes, node_id)
                                                       : LargeBuffer::Make(arena_, bytes, node_id);
    if (!buffer) {
      arena_->Discharge(charge);
      return SystemRefused(bytes);
    }
    arena_->CountAllocation();
    arena_->log().Record(bytes, node_id);
    return buffer;
  }

  absl::StatusOr<BufferRef> Charge(int64_t bytes, int32_t node_id) {
    if (bytes < 0 || bytes > kLargestRequest) return BadSize(bytes);
    if (!arena_->Charge(ChargeOf(bytes))) return OverLimit(bytes);
    KeepWithinLimit();
    arena_->log().Record(bytes, node_id);
    return BufferRef(new ChargeBuffer(arena_, bytes, node_id));
  }

 private:
  // Free blocks held back are memory too: they go when they and what is in use would pass the limit together.
  void KeepWithinLimit() {
    const MemoryBudget& budget = arena_->budget();
    const int64_t cached = arena_->large().cached_bytes();
    if (cached > 0 && budget.limit() > 0 && budget.in_use() + cached > budget.limit()) Trim();
  }

  absl::Status BadSize(int64_t bytes) const {
    if (bytes > 0) return SystemRefused(bytes);
    return absl::InvalidArgumentError(absl::StrCat("cannot allocate ", bytes, " bytes on ", name_));
  }
  absl::Status OverLimit(int64_t bytes) const {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes on ", name_, ": ",
                                                     arena_->budget().in_use(), " of the memory limit of ",
                                                     arena_->budget().limit(), " bytes are in use"));
  }
  absl::Status SystemRefused(int64_t bytes) const {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes on ", name_,
                                                     ": the system refused; ", arena_->stats().bytes_in_use,
                                                     " bytes are in use here"));
  }

  const std::string name_;
  HostArena* const arena_;
};

}  // namespace

std::shared_ptr<Allocator> MakeHostAllocator(std::string name, std::shared_ptr<MemoryBudget> budget) {
  return std::make_shared<HostAllocator>(std::move(name), std::move(budget));
}

absl::StatusOr<BufferRef> ChargeOnly(Allocator& allocator, int64_t bytes, int32_t node_id) {
  auto* host = dynamic_cast<HostAllocator*>(&allocator);
  return host != nullptr ? host->Charge(bytes, node_id) : BufferRef();
}

Allocator& DefaultHostAllocator() {
  // Never destroyed: tensors in static objects may be freed after main.
  static Allocator* const allocator = new HostAllocator("host memory", std::make_shared<MemoryBudget>(0));
  return *allocator;
}

}  // namespace thalweg
