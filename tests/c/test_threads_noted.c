/*
 * The object that a thread got last is freed without a look at what is there (sy__call_note). So that must be what it was, though
 * others may have had it meanwhile: a stray (core/policies/yard/strays.c) whose slab ended, and whose page is another size's.
 */
#include "threads_heap.h"

#define SIZE 256
#define OTHER 512
#define OF_A_SLAB (SY_PAGE_SIZE / SIZE)
#define SLABS 4
#define TRIES 2000

static struct sy_heap *heap;
static void *objects[SLABS * OF_A_SLAB];
static void *handed_out, *again; /* by the other thread last; and the same address, of the other size */
static atomic_uint turn;

enum { MAIN, OTHERS, MAINS_AGAIN, OTHERS_AGAIN };

static void wait_for(unsigned whose)
{
	while (turn != whose)
		sched_yield();
}

static bool is_of_first_slab(const void *object)
{
	return (uintptr_t)object / SY_PAGE_SIZE == (uintptr_t)objects[0] / SY_PAGE_SIZE;
}

/* Keeps what the main thread has taken of its first slab, and takes it again, the first object last. */
static void *take_strays(void *nothing)
{
	unsigned taken = 0;

	CHECK(sy_malloc(heap, SIZE, 0) != NULL);
	turn = MAIN;
	wait_for(OTHERS);
	for (unsigned i = 0; i < OF_A_SLAB - 1; i++)
		sy_mfree(heap, objects[i]);
	for (unsigned tries = 0; taken < OF_A_SLAB - 1 && tries < TRIES; tries++) {
		handed_out = sy_malloc(heap, SIZE, 0);
		taken += is_of_first_slab(handed_out);
	}
	turn = MAINS_AGAIN;
	wait_for(OTHERS_AGAIN);
	sy_mfree(heap, again);
	CHECK_FINE(sy_heap_check(heap));
	CHECK(sy_malloc(heap, SIZE, 0) != again);
	return nothing;
}

int main(void)
{
	pthread_t thread;

	heap = open_unsettled("yard:max_order=0");
	turn = OTHERS_AGAIN;
	CHECK_EQUAL(pthread_create(&thread, NULL, take_strays, NULL), 0);
	wait_for(MAIN);
	for (unsigned i = 0; i < SLABS * OF_A_SLAB; i++)
		objects[i] = sy_malloc(heap, SIZE, 0);
	sy_mfree(heap, objects[OF_A_SLAB - 1]); /* so that the slab is its own again */
	turn = OTHERS;
	wait_for(MAINS_AGAIN);
	for (unsigned i = OF_A_SLAB; i < SLABS * OF_A_SLAB; i++)
		sy_mfree(heap, objects[i]);
	for (unsigned i = 0; i < OF_A_SLAB - 1; i++)
		sy_mfree(heap, objects[i]);
	for (unsigned tries = 0; again != handed_out && tries < TRIES; tries++)
		again = sy_malloc(heap, OTHER, 0);
	CHECK(again == handed_out);
	turn = OTHERS_AGAIN;
	pthread_join(thread, NULL);
	sy_heap_close(heap);
	return check_result();
}
