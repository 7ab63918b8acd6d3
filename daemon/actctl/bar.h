// bar: lines made of characters that show a place or a share; ASCII, so that every
// terminal and every width of a character in it agrees. Pure.
#ifndef ACTD_ACTCTL_BAR_H
#define ACTD_ACTCTL_BAR_H

#define BAR_MAX 300 // characters

// "[..o.#....w..]" of `width` characters: o measured, w wanted, # commanded, each where
// it lies between min and max, "<" or ">" where beyond; a NaN is not shown. The later
// hides the earlier. Blanks in the brackets when max is not above min.
void bar_place(char *to, int width, double min, double max, double measured,
               double wanted, double commanded);
// "[=====>-------]": row of rows.
void bar_chunk(char *to, int width, double row, double rows);
// How many of `width` characters a count takes beside the largest: logarithmic, so that
// one tick in a million that was late is seen; 0 only for a count of 0.
int bar_log(int width, unsigned long long count, unsigned long long largest);

#endif
