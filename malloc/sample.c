/*
 * Sampling: one allocation in N is a guarded object, with a stack, so that bugs which happen in production alone are found there.
 *
 * Sampled objects belong to a heap of their own, which checks everything: each has pages of its own between two that can't be touched,
 * and its zones are verified when it is freed (core/debug/guard.c). Their addresses are outside of the program's heap, so its frees
 * find them where they find mappings, and free has not one instruction more. malloc has none while nothing is sampled. While
 * something is, malloc goes by the service's pointer, to a function that counts down in each thread (fast.c).
 *
 * slabyard_sample_rate is N. The program or another process writes it, and so switches sampling on and off: the heap's slow calls look
 * at it now and then. The intervals are random, N in the mean, so that no pattern of the program escapes.
 *
 * Windows. Counting adds 12 instructions to the 18 of a hot malloc. With a rate from WINDOWED on, malloc counts only in one of WINDOWS windows of
 * time, at random, and samples that many times more there. Slow calls begin windows and end them; no window is ended, and none begun,
 * by a program that makes none.
 *
 * At most MOST_LIVE objects are sampled at once. Freed ones can't be touched while they are in the quarantine, which has about as many.
 */
#include "parts.h"

#include "debugging.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "core/this_slot.h"
#include "library/amount.h"

#define EXPORT __attribute__((visibility("default")))
#define USUAL_RATE 100000u
#define SPREAD UINT64_C(0x9e3779b97f4a7c15) /* of splitmix */
#define WINDOWED 10000u
#define WINDOWS 8u
#define WINDOW_SHIFT 23 /* of nanoseconds: 8 ms */
#define MOST_RATE (UINT64_C(1) << 30)
#define MOST_LIVE 1000u
#define MOST_SIZE ((size_t)64 << 10) /* bytes of a sampled object */
#define RESERVE ((size_t)64 << 20)   /* bytes of addresses: records, stacks, and objects where no mapping can be had */
#define CHECKS "%s:debug=FZUG,audit=4096,quarantine=12M" /* of the default policy. A freed object of one page counts three, so about a thousand */

EXPORT unsigned slabyard_sample_rate;

static struct {
	unsigned rate; /* as it was seen last */
	void *(*behind)(size_t size, struct sy_heap *); /* serves requests that are not sampled */
	unsigned live;
	uint64_t random;
	bool counts;  /* malloc goes by `allocate` */
	bool opening; /* a thread has begun to open the heap of samples */
} sampling;

struct sy_heap *sy__sampled;

/* Allocations of this thread until the next sample. The first interval begins with the first allocation, which belongs to it. */
static __thread uint32_t left __attribute__((tls_model("initial-exec"))) = 1;
static __thread bool begun __attribute__((tls_model("initial-exec")));

/* Splitmix (Steele, Lea and Flood 2014). */
static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* A random interval from 1 to less than twice what a window has. */
static uint32_t interval(void)
{
	unsigned rate = __atomic_load_n(&sampling.rate, __ATOMIC_RELAXED), mean = rate < WINDOWED ? rate : rate / WINDOWS;
	uint64_t random = __atomic_add_fetch(&sampling.random, SPREAD, __ATOMIC_RELAXED);

	return 1 + (uint32_t)(mixed(random) % (mean ? 2 * mean - 1 : 1));
}

static bool is_counted(unsigned rate)
{
	return rate && (rate < WINDOWED || mixed((sy__now() >> WINDOW_SHIFT) * SPREAD) % WINDOWS == 0);
}

/* The heap of samples, which the first sample opens; NULL: there is no memory for it, or it is just being opened. */
static struct sy_heap *samples(void)
{
	struct sy_heap_options options = { .reserve = RESERVE, .sizing = { .align = ALIGNMENT } };
	struct sy_heap *heap = __atomic_load_n(&sy__sampled, __ATOMIC_ACQUIRE);
	char spec[80];

	if (sy__likely(heap) || __atomic_exchange_n(&sampling.opening, true, __ATOMIC_RELAXED))
		return heap;
	if (sy__system_limit(RLIMIT_AS) / SAMPLES_SHARE < RESERVE)
		options.reserve = (size_t)sy__system_limit(RLIMIT_AS) / SAMPLES_SHARE;
	snprintf(spec, sizeof(spec), CHECKS, sy_policies[0]->name);
	heap = sy_heap_open(spec, &options, NULL);
	__atomic_store_n(&sy__sampled, heap, __ATOMIC_RELEASE);
	return heap;
}

static void *take(size_t size)
{
	struct sy_heap *heap = samples();
	void *object = NULL;

	if (heap && __atomic_fetch_add(&sampling.live, 1, __ATOMIC_RELAXED) < MOST_LIVE)
		object = sy_malloc(heap, size, 0);
	if (object) {
		__atomic_store_n(&heap->debug->one_in, __atomic_load_n(&sampling.rate, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	} else if (heap) {
		__atomic_fetch_sub(&sampling.live, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&heap->debug->missed, 1, __ATOMIC_RELAXED);
	}
	report_add(object);
	return object;
}

static SY__OUT_OF_LINE void *allocate_due(size_t size, struct sy_heap *heap)
{
	void *object = NULL;

	if (!begun) {
		begun = true;
		left = interval();
		if (--left)
			return sampling.behind(size, heap);
	}
	left = interval();
	if (size <= MOST_SIZE && is_counted(__atomic_load_n(&sampling.rate, __ATOMIC_RELAXED)))
		object = take(size);
	return object ? object : sampling.behind(size, heap);
}

static void *allocate(size_t size, struct sy_heap *heap)
{
	return sy__likely(--left) ? sampling.behind(size, heap) : allocate_due(size, heap);
}

bool sy__sample_free_known(void *object)
{
	if (!sy__debug_knows(sy__sampled, object))
		return false;
	sy__sampled->free_this_slot(object, sy__sampled);
	__atomic_fetch_sub(&sampling.live, 1, __ATOMIC_RELAXED);
	return true;
}

bool sy__sample_has_known(const void *object)
{
	return sy__debug_knows(sy__sampled, object);
}

void sy__sample_notice(void)
{
	unsigned rate = __atomic_load_n(&slabyard_sample_rate, __ATOMIC_RELAXED);
	bool counts;

	if (sy__likely(!rate && !__atomic_load_n(&sampling.counts, __ATOMIC_RELAXED)) || !sampling.behind)
		return;
	counts = is_counted(rate);
	__atomic_store_n(&sampling.rate, rate, __ATOMIC_RELAXED);
	if (__atomic_exchange_n(&sampling.counts, counts, __ATOMIC_RELAXED) != counts)
		sy__serve_malloc(counts ? allocate : sampling.behind);
}

void sy__sample_start(struct service *served)
{
	const char *wanted = sy__setting("SLABYARD_SAMPLE");
	uint64_t rate = USUAL_RATE;

	if (wanted && !strcmp(wanted, "off"))
		wanted = NULL;
	if (wanted && strcmp(wanted, "on") && !sy__amount(wanted, strlen(wanted), &rate))
		sy__setting_refuse("SLABYARD_SAMPLE", wanted, "not a rate: give on, off, or N, for one allocation in N");
	if (rate < 1 || rate > MOST_RATE)
		sy__setting_refuse("SLABYARD_SAMPLE", wanted, "out of range: from 1 to 1G");
	sampling.behind = served->malloc;
	sampling.random = sy__now();
	if (!wanted)
		return;
	slabyard_sample_rate = sampling.rate = (unsigned)rate;
	sampling.counts = true;
	served->malloc = allocate;
}
