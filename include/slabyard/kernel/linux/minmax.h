/* <linux/minmax.h> for kernel code that is compiled into a program. Arguments are evaluated once. */
#ifndef SLABYARD_KERNEL_LINUX_MINMAX_H
#define SLABYARD_KERNEL_LINUX_MINMAX_H

#pragma GCC system_header

#define SY__EXTREME(type_a, type_b, a, b, than) \
	__extension__ ({ \
		type_a sy__a = (a); \
		type_b sy__b = (b); \
		sy__a than sy__b ? sy__a : sy__b; \
	})
#ifndef __cplusplus /* whose library has functions of these names */
#define min(a, b) SY__EXTREME(__typeof__(a), __typeof__(b), a, b, <)
#define max(a, b) SY__EXTREME(__typeof__(a), __typeof__(b), a, b, >)
#define min_t(type, a, b) SY__EXTREME(type, type, a, b, <)
#define max_t(type, a, b) SY__EXTREME(type, type, a, b, >)
/* Of numbers that are not negative, of whatever types. */
#define umin(a, b) SY__EXTREME(__typeof__((a) + (b) + 0U), __typeof__((a) + (b) + 0U), a, b, <)
#define umax(a, b) SY__EXTREME(__typeof__((a) + (b) + 0U), __typeof__((a) + (b) + 0U), a, b, >)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define min3(a, b, c) __extension__ ({ __typeof__(a) sy__ab = min(a, b); min(sy__ab, c); })
#define max3(a, b, c) __extension__ ({ __typeof__(a) sy__ab = max(a, b); max(sy__ab, c); })
#define min_not_zero(a, b) \
	__extension__ ({ \
		__typeof__(a) sy__one = (a); \
		__typeof__(b) sy__two = (b); \
		sy__one == 0 ? sy__two : sy__two == 0 ? sy__one : min(sy__one, sy__two); \
	})
#define clamp_t(type, value, low, high) \
	__extension__ ({ \
		type sy__value = (value), sy__low = (low), sy__high = (high); \
		sy__value < sy__low ? sy__low : sy__value > sy__high ? sy__high : sy__value; \
	})
#define clamp(value, low, high) clamp_t(__typeof__(value), value, low, high)
#define clamp_val(value, low, high) clamp(value, low, high)
#define swap(a, b) \
	do { \
		__typeof__(a) sy__swapped = (a); \
		(a) = (b); \
		(b) = sy__swapped; \
	} while (0)
#endif

/* One of so many from start on; those go round at the end of their type. */
static inline int sy__in_range(unsigned long long number, unsigned long long start, unsigned long long length, int narrow)
{
	return narrow ? (unsigned)(number - start) < (unsigned)length : number - start < length;
}

#define in_range(number, start, length) \
	sy__in_range((unsigned long long)(number), (unsigned long long)(start), (unsigned long long)(length), \
	             sizeof((number) + (start) + (length)) <= sizeof(unsigned))

#endif
