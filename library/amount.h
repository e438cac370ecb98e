/* Numbers of bytes as users write them: digits, and K, M or G behind them. For programs and kernels. */
#ifndef SY_AMOUNT_H
#define SY_AMOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads an amount of exactly `length` characters; a unit may be a small letter, too. What is too large for 64 bits becomes UINT64_MAX.
 * False: it is none. */
static inline bool sy__amount(const char *text, size_t length, uint64_t *amount)
{
	unsigned shift = 0;
	size_t at = 0;

	for (*amount = 0; at < length && text[at] >= '0' && text[at] <= '9'; at++)
		if (__builtin_mul_overflow(*amount, (uint64_t)10, amount) || __builtin_add_overflow(*amount, (uint64_t)(text[at] - '0'), amount))
			*amount = UINT64_MAX;
	if (at && at + 1 == length) {
		const char unit = (char)(text[at++] & ~0x20);

		shift = unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0;
		if (!shift)
			return false;
	}
	*amount = *amount > UINT64_MAX >> shift ? UINT64_MAX : *amount << shift;
	return at && at == length;
}

#endif
