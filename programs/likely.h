/* Which way a branch goes nearly always, for the compiler. */
#ifndef PROGRAMS_LIKELY_H
#define PROGRAMS_LIKELY_H

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
