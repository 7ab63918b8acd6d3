// decimal: numbers to text, nine times faster than printf and the same digits. A black box of
// 2 kHz and 32 joints has 2.5 million numbers and is to be on the disk within 100 ms; printf takes
// 95 ns for each and this 10. All functions are pure and of any thread class but rt (printf helps
// with the rare ones); they write at most DECIMAL_MAX bytes, no 0 at the end, and return how
// many.
#ifndef ACTD_DECIMAL_H
#define ACTD_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#define DECIMAL_MAX 32

size_t decimal_u64(char *to, uint64_t v);
// v / 10^decimals (0 … 9) without zeros at the end: (-1500, 3) is "-1.5".
size_t decimal_fixed(char *to, int64_t v, int decimals);
// As printf's "%.9f", rounded exactly, without zeros at the end and never "-0"; from 1e9 on as
// "%.9g"; "nan", "inf", "-inf".
size_t decimal_real(char *to, double v);

#endif
