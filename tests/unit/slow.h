// What repeats a test that every kind passed already repeats it less often where everything takes ten
// times as long, under sanitizers and in an emulator (EMULATED, tests/neon/rules.mk): there it is
// the kinds that find something, each access of memory or instruction, not the thousandth run.
#ifndef ACTD_TESTS_SLOW_H
#define ACTD_TESTS_SLOW_H

#ifndef EMULATED
#define EMULATED 0
#endif

#if defined(__SANITIZE_ADDRESS__) || EMULATED
#define SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOW 1
#endif
#endif
#ifndef SLOW
#define SLOW 0
#endif

#define REPEATS(ordinary, slow) (SLOW ? (slow) : (ordinary))

#endif
