/* <linux/random.h> for kernel code that is compiled into a program: the system's random numbers, and a generator that a program can start anew. */
#ifndef SLABYARD_KERNEL_LINUX_RANDOM_H
#define SLABYARD_KERNEL_LINUX_RANDOM_H

#pragma GCC system_header

#include "types.h"

struct rnd_state {
	u64 sy__state;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void sy__random_bytes(void *into, size_t count);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void get_random_bytes(void *into, size_t count)
{
	sy__random_bytes(into, count);
}

#define SY__RANDOM(name, type) \
	static inline type name(void) \
	{ \
		type random; \
		sy__random_bytes(&random, sizeof(random)); \
		return random; \
	}
SY__RANDOM(get_random_u8, u8)
SY__RANDOM(get_random_u16, u16)
SY__RANDOM(get_random_u32, u32)
SY__RANDOM(get_random_u64, u64)
SY__RANDOM(get_random_long, unsigned long)
#define get_random_int() get_random_u32()
#define prandom_u32() get_random_u32()
#define prandom_bytes(into, count) get_random_bytes(into, count)

/* Below the limit. */
static inline u32 get_random_u32_below(u32 limit)
{
	return (u32)((u64)get_random_u32() * limit >> 32);
}

static inline u32 get_random_u32_inclusive(u32 least, u32 most)
{
	return least + get_random_u32_below(most - least + 1);
}

#define prandom_u32_max(limit) get_random_u32_below(limit)

static inline void prandom_seed_state(struct rnd_state *state, u64 seed)
{
	state->sy__state = seed;
}

static inline u32 prandom_u32_state(struct rnd_state *state)
{
	u64 mixed = state->sy__state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
	return (u32)(mixed ^ mixed >> 31);
}

#endif
