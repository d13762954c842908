// Scheduling constants, each with the measurement behind it (2 cores of an AVX-512 server).
#pragma once

namespace thalweg {

// How long an idle thread spins before it sleeps: a hand-off to a spinning thread takes about 0.1 us, to a sleeping one 25 to
// 90 us, so spinning as long as a wake takes is at most twice the best possible.
inline constexpr double kSpinNanos = 60'000;

// Work below this is not worth waking a sleeping thread for (the waker alone pays about 13 us).
inline constexpr double kWorthWakingNanos = 30'000;

// ParallelFor: chunks take at least this long, so that the atomic counter and the cache misses of a hand-off stay small.
inline constexpr double kMinChunkNanos = 15'000;

// A node that takes at least this long is a segment of its own; cheaper ones are run together.
inline constexpr double kExpensiveNodeNanos = 15'000;

// A plan runs on several threads only if that saves at least this much of a step, by its cost estimates.
inline constexpr double kWorthParallelNanos = 50'000;

// What a node costs beyond its arithmetic: the call, output allocation, propagation.
inline constexpr double kNodeOverheadNanos = 60;

}  // namespace thalweg
