/*
 * A histogram of times with a constant relative error, after Tene's HdrHistogram: values below 128 each have a bucket,
 * and every power of two above has 64 of equal width. So a bucket is at most 1/64 of its values wide, and its middle
 * is off by less than 0.8%. Counting is a shift and an increment, without a table that has to grow: 64-bit values fit.
 */
#ifndef PROGRAMS_HISTOGRAM_H
#define PROGRAMS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 6u
#define HISTOGRAM_STEPS (1u << HISTOGRAM_BITS)
#define HISTOGRAM_BUCKETS ((64u - HISTOGRAM_BITS + 1u) * HISTOGRAM_STEPS)

struct histogram {
	uint64_t total;
	uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t value)
{
	unsigned shift;

	if (value < 2u * HISTOGRAM_STEPS)
		return (unsigned)value;
	shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
	return shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);
}

static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->total++;
	histogram->counts[histogram_bucket(value)]++;
}

/* The middle of a bucket. */
static inline double histogram_middle(unsigned bucket)
{
	unsigned shift = bucket < 2u * HISTOGRAM_STEPS ? 0 : bucket / HISTOGRAM_STEPS - 1u;
	uint64_t low = (uint64_t)(bucket - shift * HISTOGRAM_STEPS) << shift;

	return (double)low + (double)(((uint64_t)1 << shift) - 1) / 2.0;
}

/* The least value that at least this share (in thousandths) of all values don't exceed; 0 if there are no values. */
static inline double histogram_quantile(const struct histogram *histogram, unsigned thousandths)
{
	uint64_t wanted = (histogram->total * thousandths + 999) / 1000, seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->counts[i];
		if (seen >= wanted && seen)
			return histogram_middle(i);
	}
	return 0;
}

static inline void histogram_merge(struct histogram *into, const struct histogram *from)
{
	into->total += from->total;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->counts[i] += from->counts[i];
}

#endif
