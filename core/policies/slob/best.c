/*
 * SLOB's best fit: the search, and the segments that it passes (segments.h tells what for).
 *
 * All pages of the list are to be searched for the block that leaves the least over. The smallest size that could serve is known
 * (sizes.h), and nearly always a block of it is also where the alignment wants it. So a first search looks for that size alone, and
 * ends at the first page that has it. Only where none has, a second one looks for all others.
 *
 * The caller holds sy__slob_heap.lock.
 */
#include "slob.h"

#define DIVIDED (SY__SLOB_SEGMENTS / 2) /* segments that a division fills */
#define LEAST_ROOM 16u                  /* pages */

/* ---- Search ---------------------------------------------------------------------------------------------------- */

/* Whether the page is known to have no block for the request of less than `below` units. Nothing is known for kind OTHER. */
static inline bool known_to_lack(const struct sy__slob_page *state, const struct sy__slob_request *request, uint32_t below)
{
	return state->known_least >= below && state->known_want == sy__slob_key(request->kind, request->want.units);
}

/* The bits of the sizes from `from` on, and below `to`, which is larger. */
static inline uint64_t size_bits(uint32_t from, uint32_t to)
{
	uint32_t first = from / SY__SLOB_WORD_UNITS, count = (to - 1) / SY__SLOB_WORD_UNITS - first + 1;
	uint64_t bits = count < 64 ? ((uint64_t)1 << count) - 1 : ~(uint64_t)0;

	return bits << first % 64 | bits >> (-first & 63);
}

/* Looks at all blocks of a page, notes what it has, and returns the units of the smallest with room for the request, or
 * SY__SLOB_NO_BLOCK. If they are less than `below`, *place is there. */
static uint32_t find_least(const struct sy__slob_heap *slob, struct sy_page *page, const struct sy__slob_request *request,
                           uint32_t below, struct sy__slob_place *place)
{
	struct sy__slob_page *state = sy__slob_page_state(page);
	struct sy__slob_seen seen;
	uint32_t least = sy__slob_best_fit(sy__slob_page_units(slob, page), state->first, &request->want, below, place, &seen);

	state->may_have = seen.sizes;
	if (sy__unlikely(seen.damaged)) {
		sy__slob_tell_damage(slob, page, seen.damaged - 1);
		state->most[request->bound] = 0;
	} else if (least == SY__SLOB_NO_BLOCK) {
		sy__slob_refuse(state, request, seen.largest);
	} else if (request->kind != SY__SLOB_OTHER) {
		state->known_want = sy__slob_key(request->kind, request->want.units);
		state->known_least = (uint16_t)least;
	}
	return least;
}

/* What best fit looks for, and what it has found so far. */
struct best {
	const struct sy__slob_request *request;
	int node;
	uint32_t tightest, units; /* the least that there can be; what the best block has, or less than that is wanted */
	uint64_t better;          /* bits of the sizes between the two */
	uint32_t key;             /* sy__slob_want_key */
	struct sy_page *page;     /* or NULL */
	struct sy__slob_place *place;
};

/* Whether none of its pages has a better block. */
static inline bool segment_lacks(const struct sy__slob_segment *segment, const struct best *best)
{
	uint32_t at = sy__slob_known_at(best->key);

	return !(segment->may_have & best->better) || (segment->known_want[at] == best->key && segment->known_least[at] >= best->units);
}

/* Looks at a segment's pages, up to one with the tightest block. */
static void search_segment(const struct sy__slob_heap *slob, struct sy__slob_segment *segment, struct best *best)
{
	struct sy_list *link = segment->first;
	uint64_t seen = 0;

	for (uint32_t left = segment->pages; left; left--, link = link->next) {
		struct sy_page *page = sy__slob_page_of_link(link);
		const struct sy__slob_page *state = sy__slob_page_state(page);

		if (state->may_have & best->better && sy__slob_may_serve(page, best->request, best->node) &&
		    !known_to_lack(state, best->request, best->units)) {
			uint32_t least = find_least(slob, page, best->request, best->units, best->place);

			if (least < best->units) {
				best->page = page;
				best->units = least;
				if (least == best->tightest)
					return;
				best->better = size_bits(best->tightest, least);
			}
		}
		seen |= state->may_have;
	}
	segment->may_have = seen;
	if (best->node != SY_ANY_NODE)
		return; /* other nodes' pages were not asked */
	segment->known_want[sy__slob_known_at(best->key)] = best->key;
	segment->known_least[sy__slob_known_at(best->key)] = (uint16_t)best->units;
}

/* The first page of the list with the smallest block of less than `below` units that serves the request; NULL: none. */
static struct sy_page *search_below(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node, uint32_t tightest,
                                    uint32_t below, struct sy__slob_place *place)
{
	struct best best = { request, node, tightest, below, size_bits(tightest, below), sy__slob_want_key(&request->want), NULL, place };
	struct sy__slob_segment *all = slob->segments.all;

	for (uint32_t i = slob->segments.front[request->list]; i && best.units != tightest; i = all[i].next)
		if (!segment_lacks(&all[i], &best))
			search_segment(slob, &all[i], &best);
	return best.page;
}

struct sy_page *sy__slob_search_best(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node,
                                     struct sy__slob_place *place)
{
	uint32_t tightest = sy__slob_smallest(&slob->sizes[request->list], request->want.units);
	struct sy_page *page = search_below(slob, request, node, tightest, tightest + 1, place);

	return page ? page : search_below(slob, request, node, tightest, SY__SLOB_NO_BLOCK, place);
}

/* ---- Segments -------------------------------------------------------------------------------------------------- */

static struct sy__slob_page *state_of(struct sy_list *link)
{
	return sy__entry(link, struct sy__slob_page, link);
}

/* Puts an empty segment in front of a list's others. */
static void begin(struct sy__slob_segments *segments, unsigned list)
{
	uint8_t fresh = segments->free;

	segments->free = segments->all[fresh].next;
	segments->all[fresh].next = segments->front[list];
	segments->front[list] = fresh;
}

/* Enters a page in front of all others of its list. */
static void enter(struct sy__slob_segments *segments, struct sy__slob_page *state)
{
	uint8_t front = segments->front[state->list];
	struct sy__slob_segment *segment = &segments->all[front];

	state->segment = front;
	segment->first = &state->link;
	segment->may_have |= state->may_have;
	sy__fill(segment->known_least, 0, sizeof segment->known_least);
	segment->pages++;
}

static bool has_room(const struct sy__slob_segments *segments, unsigned list)
{
	uint8_t front = segments->front[list];

	return front && segments->all[front].pages < segments->room;
}

static void make_all_free(struct sy__slob_segments *segments, uint32_t room)
{
	sy__fill(segments, 0, sizeof *segments);
	segments->room = room;
	segments->free = 1;
	for (unsigned i = 1; i + 1 < SY__SLOB_SEGMENTS; i++)
		segments->all[i].next = (uint8_t)(i + 1);
}

/* Divides all lists anew. */
static SY__COLD void divide(struct sy__slob_heap *slob)
{
	struct sy__slob_segments *segments = &slob->segments;
	uint32_t pages = 0;

	for (unsigned list = 0; list < SY__SLOB_LISTS; list++)
		for (struct sy_list *link = slob->partial[list].next; link != &slob->partial[list]; link = link->next)
			pages++;
	make_all_free(segments, pages / DIVIDED > LEAST_ROOM ? pages / DIVIDED + 1 : LEAST_ROOM);
	for (unsigned list = 0; list < SY__SLOB_LISTS; list++)
		for (struct sy_list *link = slob->partial[list].prev; link != &slob->partial[list]; link = link->prev) {
			if (!has_room(segments, list))
				begin(segments, list);
			enter(segments, state_of(link));
		}
}

void sy__slob_join_segment(struct sy__slob_heap *slob, struct sy__slob_page *state)
{
	struct sy__slob_segments *segments = &slob->segments;

	if (!has_room(segments, state->list)) {
		if (!segments->free) {
			divide(slob);
			return;
		}
		begin(segments, state->list);
	}
	enter(segments, state);
}

void sy__slob_leave_segment(struct sy__slob_heap *slob, struct sy__slob_page *state)
{
	struct sy__slob_segment *segment = &slob->segments.all[state->segment];

	if (segment->first == &state->link)
		segment->first = state->link.next;
	if (!--segment->pages)
		segment->may_have = 0;
}
