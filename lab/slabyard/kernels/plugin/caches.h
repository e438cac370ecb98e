/*
 * The caches of a machine that there is not: for each CPU one for instructions and one for data, and a last level for all.
 *
 *     first level   32 KiB, 8 ways, lines of 64 bytes, for each CPU; data apart from instructions
 *     last level    8 MiB, 16 ways, lines of 64 bytes, shared, for both
 *
 * All are filled on reads and on writes, and drop the line that was used longest ago. A set is a list of its lines, the one used last
 * in front, so a hit on that one costs a single comparison. Of data, a CPU has to own a line before it writes to it: then no other
 * CPU's first level has the line any longer, and whoever wants it next finds it in the last level. That is what an object costs that
 * was allocated on one CPU and is freed on another. A line keeps in its lowest bit whether its CPU owns it.
 *
 * Left out are prefetching, translation of addresses, and the time that anything takes: misses are counted, no more. lab/slabyard/
 * kernels/cost.py describes this model in the records; who changes it here changes it there.
 */
#ifndef SLABYARD_PLUGIN_CACHES_H
#define SLABYARD_PLUGIN_CACHES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	LINE_SHIFT = 6,
	FIRST_SETS = 64, FIRST_WAYS = 8,
	LAST_SETS = 8192, LAST_WAYS = 16,
	MOST_CPUS = 16,
};

#define OWNED ((uint64_t)1)

struct first_level {
	uint64_t lines[FIRST_SETS][FIRST_WAYS]; /* number of the line, shifted by one, and OWNED; 0: none */
};

static struct first_level instructions[MOST_CPUS], data[MOST_CPUS];
static uint64_t last_level[LAST_SETS][LAST_WAYS];
static unsigned cpu_count;

/* Puts what is at `way` in front. */
static inline void bring_forward(uint64_t *set, unsigned way, uint64_t line)
{
	memmove(set + 1, set, way * sizeof(*set));
	set[0] = line;
}

/* Finds a line, whoever owns it; `ways`: it is not there. */
static inline unsigned find_way(const uint64_t *set, unsigned ways, uint64_t line)
{
	unsigned way = 0;

	while (way < ways && (set[way] | OWNED) != (line << 1 | OWNED))
		way++;
	return way;
}

/* What other CPUs have of a line: a writer takes it away from them, a reader makes them own it no longer. */
static void tell_others(unsigned cpu, uint64_t line, bool written)
{
	for (unsigned other = 0; other < cpu_count; other++) {
		uint64_t *set = data[other].lines[line % FIRST_SETS];
		unsigned way = other == cpu ? FIRST_WAYS : find_way(set, FIRST_WAYS, line);

		if (way == FIRST_WAYS)
			continue;
		if (!written) {
			set[way] &= ~OWNED;
			continue;
		}
		memmove(set + way, set + way + 1, (FIRST_WAYS - 1 - way) * sizeof(*set));
		set[FIRST_WAYS - 1] = 0;
	}
}

/* True: the last level has not had it. */
static inline bool misses_last(uint64_t line)
{
	uint64_t *set = last_level[line % LAST_SETS];
	unsigned way = find_way(set, LAST_WAYS, line);

	bring_forward(set, way < LAST_WAYS ? way : LAST_WAYS - 1, line << 1);
	return way == LAST_WAYS;
}

/* How many levels have not had it: 0 to 2. */
static inline unsigned misses_fetch(unsigned cpu, uint64_t line)
{
	uint64_t *set = instructions[cpu].lines[line % FIRST_SETS];
	unsigned way = find_way(set, FIRST_WAYS, line);

	if (way) /* in front it stays as it is */
		bring_forward(set, way < FIRST_WAYS ? way : FIRST_WAYS - 1, line << 1);
	return way < FIRST_WAYS ? 0 : 1 + misses_last(line);
}

/* The same of data. */
static inline unsigned misses_access(unsigned cpu, uint64_t line, bool written)
{
	uint64_t *set = data[cpu].lines[line % FIRST_SETS];
	unsigned way = find_way(set, FIRST_WAYS, line);
	bool there = way < FIRST_WAYS;
	uint64_t owned = written ? OWNED : there ? set[way] & OWNED : 0;

	if (!there || (written && !(set[way] & OWNED)))
		tell_others(cpu, line, written);
	bring_forward(set, there ? way : FIRST_WAYS - 1, line << 1 | owned);
	return there ? 0 : 1 + misses_last(line);
}

#endif
