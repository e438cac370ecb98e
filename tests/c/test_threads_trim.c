/*
 * What a trim gives back where survivors are scattered: under SLUB and yard also unused pages inside slabs. Survivors stay as they
 * are, the heap's figures stay exact, every free object can still be had, once, and trimmed slabs end as others do.
 */
#include "threads_support.h"

#define OBJECTS 40000u
#define ROUNDS 4u
#define SURVIVORS 100u /* one in so many */

static const char *const sizings[] = {
	"yard", "yard:classes=fine", "yard:max_order=4,min_order=2,classes=fine", "yard:min_order=5,max_order=5",
	"slub", "slub:max_order=4,min_order=2,classes=fine", "slub:tiny=on",
};

struct scatter {
	struct sy_heap *heap;
	unsigned char *objects[OBJECTS];
	uint32_t bytes[OBJECTS];
	uint64_t random;
};

static uint64_t backed_pages(const struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.committed_pages;
}

static uint32_t draw_bytes(struct scatter *scatter)
{
	uint32_t most = check_random(&scatter->random) % 50 ? 250 : 20000;

	return 16 + (uint32_t)(check_random(&scatter->random) % most);
}

/* Everything that lives is in pages that count as backed again. */
static void fill(struct scatter *scatter)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < OBJECTS; bytes += scatter->bytes[i++]) {
		if (scatter->objects[i])
			continue;
		scatter->bytes[i] = draw_bytes(scatter);
		scatter->objects[i] = sy_malloc(scatter->heap, scatter->bytes[i], 0);
		CHECK(scatter->objects[i] != NULL);
		memset(scatter->objects[i], (unsigned char)i, scatter->bytes[i]);
	}
	CHECK(backed_pages(scatter->heap) << SY_PAGE_SHIFT >= bytes);
}

static void verify(struct scatter *scatter, unsigned i)
{
	if (!filled(scatter->objects[i], scatter->bytes[i], (unsigned char)i))
		CHECK(false && "what is in use stays as it is");
}

static void give(struct scatter *scatter, unsigned i)
{
	verify(scatter, i);
	sy_mfree(scatter->heap, scatter->objects[i]);
	scatter->objects[i] = NULL;
}

/* One in `one_in` of the objects stays; 0: none. */
static void thin_out(struct scatter *scatter, unsigned one_in)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (scatter->objects[i] && (!one_in || check_random(&scatter->random) % one_in))
			give(scatter, i);
}

static void *thin_out_more(void *argument)
{
	thin_out(argument, 2);
	return NULL;
}

static bool every_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	(void)slab;
	return true;
}

static bool count_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	uint64_t *counted = context;

	if (!slab->large)
		counted[part->state == SY_PART_USED] += part->state == SY_PART_USED || part->state == SY_PART_FREE || part->state == SY_PART_SLOT;
	return true;
}

/* What a walk finds used and free, against what the caches count. */
static void compare_walk(struct sy_heap *heap)
{
	uint64_t counted[2] = { 0, 0 }, in_use = 0, objects = 0;
	const struct sy_visitor visitor = { .slab = every_slab, .part = count_part, .context = counted };

	CHECK(sy_heap_walk(heap, &visitor));
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache_counts counts;

		sy_cache_count((struct sy_cache *)(void *)((char *)at - offsetof(struct sy_cache, link)), &counts);
		in_use += counts.objects_in_use;
		objects += counts.objects;
	}
	CHECK_EQUAL(counted[1], in_use);
	CHECK_EQUAL(counted[0] + counted[1], objects);
}

static void trim(struct scatter *scatter)
{
	uint64_t before = backed_pages(scatter->heap), given = sy_heap_trim(scatter->heap);

	CHECK_EQUAL(given, (before - backed_pages(scatter->heap)) << SY_PAGE_SHIFT);
	CHECK_FINE(sy_heap_check(scatter->heap));
	compare_walk(scatter->heap);
	for (unsigned i = 0; i < OBJECTS; i++)
		if (scatter->objects[i])
			verify(scatter, i);
}

static void scatter_on(const char *spec)
{
	const struct sy_heap_options options = { .keep = true };
	static struct scatter scatter;
	uint64_t peak;

	scatter = (struct scatter){ .heap = sy_heap_open(spec, &options, NULL), .random = 7 };
	CHECK(scatter.heap != NULL);
	if (!scatter.heap)
		return;
	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_t thread;

		fill(&scatter);
		peak = backed_pages(scatter.heap);
		thin_out(&scatter, SURVIVORS);
		trim(&scatter);
		CHECK(backed_pages(scatter.heap) < peak * 2 / 5);
		CHECK(!pthread_create(&thread, NULL, thin_out_more, &scatter));
		pthread_join(thread, NULL);
		trim(&scatter);
		if (round == 1)
			thin_out(&scatter, 0);
	}
	thin_out(&scatter, 0);
	trim(&scatter);
	CHECK(backed_pages(scatter.heap) < 200);
	sy_heap_close(scatter.heap);
}

/* ---- One slab, to the page ------------------------------------------------------------------------------------------ */

#define SIZE 1200
#define OF_A_SLAB 13u /* in four pages, with 784 bytes behind the last object */

static struct sy_heap *heap;
static struct sy_cache *cache;
static unsigned char *objects[OF_A_SLAB + 1];

/* All objects of one slab, and one of another slab, from which the thread allocates. */
static void fill_slab(const struct sy_cache_config *config)
{
	heap = sy_heap_open("yard:min_order=2,max_order=2", &(struct sy_heap_options){ .keep = true }, NULL);
	CHECK(heap != NULL);
	cache = sy_cache_create(heap, config);
	CHECK(cache != NULL);
	for (unsigned i = 0; i <= OF_A_SLAB; i++) {
		objects[i] = sy_alloc(cache, 0);
		CHECK(objects[i] == objects[0] + (size_t)i * SIZE || i == OF_A_SLAB);
	}
}

static void free_but(unsigned one, unsigned other)
{
	for (unsigned i = 0; i < OF_A_SLAB; i++)
		if (i != one && i != other)
			sy_free(cache, objects[i]);
}

static bool count_gone(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	*(unsigned *)context += slab->address == (char *)objects[0] && part->list && !strcmp(part->list, "given back");
	return true;
}

/* Objects of the slab that lie in pages which have been given back. */
static unsigned gone(void)
{
	unsigned count = 0;
	const struct sy_visitor visitor = { .slab = every_slab, .part = count_gone, .context = &count };

	CHECK_FINE(sy_heap_check(heap));
	CHECK(sy_heap_walk(heap, &visitor));
	return count;
}

/* The last page goes together with the rest behind all objects. Later a page goes that shares its objects with the two
 * beside it, which went before. */
static void to_the_page(void)
{
	unsigned char *again[OF_A_SLAB] = { NULL };

	fill_slab(&(struct sy_cache_config){ .name = "exact", .size = SIZE, .flags = SY_CACHE_NO_MERGE });
	free_but(0, 8);
	CHECK(sy_heap_trim(heap) >= 2 * SY_PAGE_SIZE);
	CHECK_EQUAL(gone(), 7); /* 3 to 6 of the second page, 10 to 12 of the last */
	sy_free(cache, objects[8]);
	CHECK_EQUAL(sy_heap_trim(heap), SY_PAGE_SIZE);
	CHECK_EQUAL(gone(), 10);
	CHECK_EQUAL(sy_heap_trim(heap), 0);
	for (unsigned i = 1; i < OF_A_SLAB; i++) {
		again[i] = sy_alloc(cache, 0);
		CHECK(again[i] != NULL);
		memset(again[i], (int)i, SIZE);
	}
	CHECK_EQUAL(gone(), 0);
	for (unsigned i = 1; i < OF_A_SLAB; i++)
		CHECK(filled(again[i], SIZE, (unsigned char)i));
	sy_heap_close(heap);
}

/* Where free objects keep their contents, their pages stay too. */
static void contents_stay(const struct sy_cache_config *config)
{
	fill_slab(config);
	for (unsigned i = 0; i < OF_A_SLAB; i++)
		memset(objects[i], 7, config->size);
	free_but(0, 0);
	sy_heap_trim(heap);
	CHECK_EQUAL(gone(), 0);
	for (unsigned i = 1; i < OF_A_SLAB; i++)
		CHECK(filled(objects[i], config->size, 7));
	sy_heap_close(heap);
}

static void construct_sevens(void *object, size_t size)
{
	memset(object, 7, size);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(sizings) / sizeof(sizings[0]); i++)
		scatter_on(sizings[i]);
	to_the_page();
	contents_stay(&(struct sy_cache_config){ .name = "made", .size = SIZE - 8, .align = 16, .constructor = construct_sevens });
	contents_stay(&(struct sy_cache_config){ .name = "typesafe", .size = SIZE - 8, .align = 16, .flags = SY_CACHE_TYPESAFE_BY_RCU });
	return check_result();
}
