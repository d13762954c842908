// THALWEG_CLONES before a function compiles it for several x86-64 levels and picks the right one when the program is
// loaded, so that one portable binary uses the vector units of the processor it runs on. For simple arithmetic loops;
// whatever they call must be inlined into them.
//
// Off in sanitizer builds: the loader would run the instrumented choice before the sanitizer's own set-up.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define THALWEG_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define THALWEG_CLONES
#endif

// For the small functions that such loops are made of.
#define THALWEG_INLINE inline __attribute__((always_inline))
