/*
 * Blocks at chosen places (core/backend/place.c). Each lies where it was asked for, or is refused for a reason. The page
 * allocator stays sound whatever comes and goes. A heap whose requests have chosen places gets just those.
 */
#include "core/types.h"

#include "core/backend/place.h"
#include "pages_support.h"

#define PAGES 5000u /* four maximal blocks, and a remainder */
#define ROUNDS 20000

static struct sy_pages *open_pages(uint64_t count)
{
	struct sy_pages_config config;

	one_zone(&config, count, 1);
	config.cpu_lists = false;
	return sy_pages_create(&config);
}

/* Frames are taken and given back at random, beside blocks without a chosen place. A map knows which are in use. */
static void places_are_what_was_asked_for(void)
{
	static struct sy_page *held[PAGES];
	static uint8_t used[PAGES];
	struct sy_pages *pages = open_pages(PAGES);
	uint64_t state = 7, refused = 0, met = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned order = (unsigned)(random_next(&state) % 6);
		uint64_t frame = random_next(&state) % PAGES >> order << order;
		bool room = frame + (1u << order) <= PAGES;
		struct sy_page *page;

		for (uint64_t at = frame; room && at < frame + (1u << order); at++)
			room = !used[at];
		if (held[frame]) {
			memset(&used[frame], 0, (size_t)1 << held[frame]->order);
			sy_pages_free(pages, 0, held[frame]);
			held[frame] = NULL;
			continue;
		}
		page = round % 8 ? sy__block_take_at(pages, frame, order, SY_USE_ENVIRONMENT) : sy_pages_alloc(pages, 0, order, 0, SY_ANY_NODE);
		if (round % 8) {
			CHECK(page ? room : !room);
			refused += !page;
			met += page != NULL;
		}
		if (!page)
			continue;
		CHECK(round % 8 == 0 || sy_page_number(pages, page) == frame);
		held[sy_page_number(pages, page)] = page;
		memset(&used[sy_page_number(pages, page)], 1, (size_t)1 << order);
		if (round % 64 == 0)
			CHECK_TEXT(sy_pages_check(pages), NULL);
	}
	CHECK(refused > 1000 && met > 1000);
	for (unsigned at = 0; at < PAGES; at++)
		if (held[at])
			sy_pages_free(pages, 0, held[at]);
	CHECK_TEXT(sy_pages_check(pages), NULL);
	sy_pages_destroy(pages);
}

static void what_cannot_be_is_refused(void)
{
	struct sy_pages *pages = open_pages(PAGES);

	CHECK(!sy__block_take_at(pages, 2, 2, SY_USE_ENVIRONMENT));           /* no multiple of four */
	CHECK(!sy__block_take_at(pages, 0, SY_MAX_ORDER + 1, SY_USE_ENVIRONMENT));
	CHECK(!sy__block_take_at(pages, PAGES, 0, SY_USE_ENVIRONMENT));       /* behind the zone */
	CHECK(!sy__block_take_at(pages, 4992, 4, SY_USE_ENVIRONMENT));        /* with one half */
	CHECK(!sy__block_take_at(pages, (uint64_t)1 << 60, 0, SY_USE_ENVIRONMENT));
	sy_pages_destroy(pages);
}

struct script {
	struct sy_pages *pages;
	uint64_t frame; /* of the next large object */
	unsigned asked;
};

static struct sy_page *by_script(void *context, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use use)
{
	struct script *script = context;

	if (use != SY_USE_LARGE)
		return sy__block_take(script->pages, slot, order, flags, node, use);
	script->asked++;
	return script->frame == UINT64_MAX ? NULL : sy__block_take_at(script->pages, script->frame, order, use);
}

static void a_heap_gets_what_the_placer_chooses(void)
{
	struct script script = { .pages = open_pages(PAGES) };
	const struct sy__placer placer = { by_script, &script };
	struct sy_heap_config config;
	struct sy_heap *heap;
	char *first, *second;

	sy_heap_defaults(sy_policy_find("slub"), &config);
	heap = sy_heap_create(script.pages, &config);
	sy__pages_set_placer(script.pages, &placer);
	script.frame = 4096;
	first = sy_kmalloc(heap, 0, 16 * SY_PAGE_SIZE, 0, SY_ANY_NODE);
	script.frame = 64;
	second = sy_kmalloc(heap, 0, 16 * SY_PAGE_SIZE, 0, SY_ANY_NODE);
	CHECK(first && second && first == second + (4096 - 64) * SY_PAGE_SIZE);
	CHECK(!sy_kmalloc(heap, 0, 16 * SY_PAGE_SIZE, 0, SY_ANY_NODE)); /* it is there already */
	script.frame = UINT64_MAX;
	CHECK(!sy_kmalloc(heap, 0, 16 * SY_PAGE_SIZE, 0, SY_ANY_NODE));
	CHECK(script.asked == 4);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_kfree(heap, 0, first);
	sy__pages_set_placer(script.pages, NULL);
	first = sy_kmalloc(heap, 0, 16 * SY_PAGE_SIZE, 0, SY_ANY_NODE);
	CHECK(first && script.asked == 4);
	sy_heap_destroy(heap);
	CHECK_TEXT(sy_pages_check(script.pages), NULL);
	sy_pages_destroy(script.pages);
}

int main(void)
{
	places_are_what_was_asked_for();
	what_cannot_be_is_refused();
	a_heap_gets_what_the_placer_chooses();
	return check_result();
}
