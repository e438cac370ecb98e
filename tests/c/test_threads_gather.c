/*
 * What a thread frees of large size classes (core/policies/yard/strays.c): it gathers, of whosever slabs it is, and is what the
 * thread gets next; up to a limit, beyond which it goes to its slab. It goes home when somebody trims or shrinks, when the heap
 * settles, and when the thread needs pages; a thread's successor gets it.
 */
#include "threads_heap.h"

#define SIZE 2000
#define TAKEN 48 /* of several slabs */
#define ROUNDS 20000
#define MOST 300 /* objects at a time */

static struct sy_heap *heap;
static void *objects[TAKEN];
static size_t rest; /* objects in use beside them */

struct stray {
	void *next;
	size_t left;
};

static bool gathers(void)
{
	return sizeof(void *) == 8; /* else there is no room for marks of pages */
}

/* ---- What is seen ------------------------------------------------------------------------------------------------- */

struct seen {
	size_t in_use, on_freelists, twice;
};

static bool see_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	(void)slab;
	return true;
}

static bool see(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;

	if (!slab->cache || slab->cache->object_size < SIZE || !part->is_object)
		return true;
	seen->in_use += part->state == SY_PART_USED;
	seen->on_freelists += part->list && !strcmp(part->list, "freelist");
	seen->twice += part->lists > 1;
	return true;
}

/* With so many objects in use. */
static size_t on_freelists_with(size_t in_use)
{
	struct seen seen = { 0, 0, 0 };
	const struct sy_visitor visitor = { see_slab, see, &seen, NULL };

	CHECK_FINE(sy_heap_check(heap));
	CHECK(sy_heap_walk(heap, &visitor));
	CHECK_EQUAL(seen.in_use, in_use);
	CHECK_EQUAL(seen.twice, 0);
	return seen.on_freelists;
}

/* ---- One thread ---------------------------------------------------------------------------------------------------- */

static unsigned nth(unsigned i)
{
	return i * 29 % TAKEN; /* in no order */
}

static void take(void)
{
	for (unsigned i = 0; i < TAKEN; i++)
		objects[i] = sy_malloc(heap, SIZE, 0);
}

static void give(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sy_mfree(heap, objects[nth(i)]);
}

/* Takes what the slab that the thread allocates from has on the freelist, as others gather only where nothing is. */
static void use_up(void)
{
	rest = 0;
	do {
		CHECK(sy_malloc(heap, SIZE, 0) != NULL);
		rest++;
	} while (on_freelists_with(TAKEN + rest));
}

static void take_and_give(void)
{
	take();
	use_up();
	give(TAKEN);
	on_freelists_with(rest);
}

/* What was freed at that point is what comes next. */
static bool comes(unsigned i)
{
	return sy_malloc(heap, SIZE, 0) == objects[nth(i)];
}

/* The last one that was freed comes first. */
static void serves_them(void)
{
	take_and_give();
	for (unsigned i = TAKEN; i--;)
		CHECK(comes(i) || !gathers());
}

static void knows_a_limit(void)
{
	take_and_give();
	for (unsigned i = 4; i--;)
		CHECK(comes(i) || !gathers());
}

/* The object that was handed out last is counted, too, where another one has gathered since. */
static void counts_them(void)
{
	unsigned gathered = 0;

	take();
	for (unsigned i = 0; i < TAKEN; i++) {
		struct stray *last = sy_malloc(heap, SIZE, 0);

		sy_mfree(heap, objects[nth(i)]);
		memset(last, 0, SIZE);
		sy_mfree(heap, last);
		gathered += last->next == objects[nth(i)];
		CHECK(last->next != objects[nth(i)] || last->left == 2);
		for (unsigned again = 0; again < 2; again++)
			CHECK(sy_malloc(heap, SIZE, 0) != NULL);
	}
	CHECK(gathered || !gathers());
	on_freelists_with(2 * TAKEN);
}

static void gathers_none(void)
{
	take_and_give();
	CHECK(!comes(TAKEN - 1));
}

static void trims(void)
{
	take_and_give();
	sy_heap_trim(heap);
	CHECK_EQUAL(on_freelists_with(rest), 0);
}

static void shrinks(void)
{
	take_and_give();
	sy_heap_shrink(heap);
	CHECK_EQUAL(on_freelists_with(rest), 0);
}

static void settles(void)
{
	take_and_give();
	sy__settle_soon(heap);
	sy__heap_tick(heap);
	on_freelists_with(rest);
	CHECK(!comes(TAKEN - 1));
}

/* Pages for another size. */
static void gives_way(void)
{
	take_and_give();
	for (unsigned i = 0; i < TAKEN; i++)
		CHECK(sy_malloc(heap, 3 * SIZE, 0) != NULL);
	CHECK(!comes(TAKEN - 1));
}

/* Objects that are freed at once as they were taken, and others, with all that is kept of them sound at any time. */
static void random_work(void)
{
	static void *held[MOST];
	size_t in_use = 0;
	uint64_t state = 7;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned at = (unsigned)((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % MOST;

		if (round % 5 == 0)
			sy_mfree(heap, sy_malloc(heap, SIZE, 0));
		if (held[at])
			sy_mfree(heap, held[at]);
		in_use += held[at] ? (size_t)-1 : 1;
		held[at] = held[at] ? NULL : sy_malloc(heap, SIZE, 0);
		if (held[at])
			memset(held[at], (int)round, SIZE);
		if (round % 1000 == 0)
			on_freelists_with(in_use);
	}
	for (unsigned i = 0; i < MOST; i++) {
		if (held[i])
			sy_mfree(heap, held[i]);
		held[i] = NULL;
	}
	on_freelists_with(0);
}

static void *run(void *work)
{
	(*(void (**)(void))work)();
	return NULL;
}

static void in_thread(void (*work)(void))
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, run, &work), 0);
	pthread_join(thread, NULL);
}

static void open_with(const char *spec)
{
	heap = open_unsettled(spec);
}

static void try(const char *spec, void (*work)(void))
{
	open_with(spec);
	in_thread(work);
	sy_heap_close(heap);
}

/* ---- Two of them ------------------------------------------------------------------------------------------------------ */

static void frees_others(void)
{
	use_up();
	give(TAKEN / 2);
	CHECK(comes(TAKEN / 2 - 1) || !gathers());
}

/* Of the main thread's slabs, which has half of the objects still. */
static void of_others(void)
{
	open_with("yard");
	take();
	in_thread(frees_others);
	on_freelists_with(TAKEN / 2 + 1 + rest);
	sy_heap_trim(heap);
	CHECK_EQUAL(on_freelists_with(TAKEN / 2 + 1 + rest), 0);
	sy_heap_close(heap);
}

/* Several of these slabs are full, and nobody's: the heap's end puts what was gathered back into them. */
static void of_others_at_the_end(void)
{
	open_with("yard");
	take();
	in_thread(frees_others);
	on_freelists_with(TAKEN / 2 + 1 + rest);
	sy_heap_close(heap);
}

static void inherits(void)
{
	CHECK(comes(TAKEN - 1) || !gathers());
}

/* The next thread gets the slot. */
static void of_a_thread_that_ended(void)
{
	open_with("yard");
	in_thread(take_and_give);
	on_freelists_with(rest);
	in_thread(inherits);
	sy_heap_close(heap);
}

int main(void)
{
	try("yard", serves_them);
	try("yard:sheaf=4", knows_a_limit);
	try("yard", counts_them);
	try("yard:sheaf=0", gathers_none);
	try("yard", trims);
	try("yard", shrinks);
	try("yard", settles);
	try("yard", gives_way);
	try("yard", random_work);
	try("yard:sheaf=3,strays=9", random_work);
	try("yard:max_order=0", random_work);
	of_others();
	of_others_at_the_end();
	of_a_thread_that_ended();
	return check_result();
}
