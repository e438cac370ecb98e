/*
 * Numbers of threads, as kernel code knows processors (linux/smp.h): the lowest that no thread has. Where all are taken,
 * threads share, and what is per processor is theirs together.
 */
#include <slabyard/kernel/linux/bitops.h>
#include <slabyard/kernel/linux/smp.h>

#include <pthread.h>

static unsigned long taken[BITS_TO_LONGS(NR_CPUS)];
static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread unsigned number; /* and 1; 0: none yet */

static void give_back(void *own)
{
	clear_bit((unsigned)(uintptr_t)own - 1, taken);
}

static void make_key(void)
{
	pthread_key_create(&at_end, give_back);
}

static SY__COLD unsigned take_number(void)
{
	static unsigned last;

	pthread_once(&once, make_key);
	for (unsigned i = 0; i < NR_CPUS; i++)
		if (!test_and_set_bit(i, taken)) {
			number = i + 1;
			pthread_setspecific(at_end, (void *)(uintptr_t)number);
			return i;
		}
	number = __atomic_fetch_add(&last, 1, __ATOMIC_RELAXED) % NR_CPUS + 1;
	return number - 1;
}

unsigned sy__processor(void)
{
	return sy__likely(number) ? number - 1 : take_number();
}
