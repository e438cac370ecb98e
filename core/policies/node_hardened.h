/*
 * What node.c does in addition in a hardened heap: see links.h. Only node.c includes this.
 *
 * A retired slab stays on its node's list of retired slabs, under the node's lock, until its cache needs a slab. Meanwhile
 * sy__node_empty_retired gives back its memory, but not its addresses.
 */
#define RING_BYTES ((size_t)128 << 10) /* of objects of a cache that a slot keeps, */
#define LEAST_IN_RING 2u               /* but at least this many objects */
#define SHUFFLED_BYTES 256u            /* of neighbouring objects in a new slab, which are shuffled among themselves: */
#define LEAST_SHUFFLED 4u              /* at least this many objects, */
#define SHUFFLED 32u                   /* at most this many, and this many if each is larger than SHUFFLED_BYTES */

_Static_assert(SHUFFLED_BYTES / sizeof(uint64_t) <= SHUFFLED, "a group of the smallest objects is no larger");

static uint64_t give_unused(struct sy__node_cache *, unsigned slot, struct sy__node *);

/* The next random number (splitmix64; Steele, Lea and Flood 2014). */
static uint64_t next_number(uint64_t *state)
{
	uint64_t number = *state += UINT64_C(0x9e3779b97f4a7c15);

	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* Inverse of an odd number modulo 2^64: each step doubles the number of right bits, from three on (Newton). */
static uint64_t inverse(uint64_t odd)
{
	uint64_t result = odd;

	for (unsigned bits = 3; bits < 64; bits *= 2)
		result *= 2 - odd * result;
	return result;
}

/* Prepares a new cache. */
static void harden(struct sy__node_cache *cache)
{
	const struct sy_heap *heap = cache->cache.heap;
	uint64_t state = heap->concurrent ? sy__random() : cache->cache.size;
	size_t most = RING_BYTES / cache->cache.size;

	for (unsigned i = 0; i < 3; i++)
		cache->links.secrets[i] = next_number(&state) | (i > 0);
	cache->links.secrets[3] = inverse(cache->links.secrets[2]);
	cache->links.mark = SY__IN_RING * cache->links.secrets[2];
	cache->links.origin = cache->memory - sizeof(uint64_t);
	for (unsigned i = 0; i < heap->nodes; i++) {
		cache->nodes[i].random = next_number(&state);
		sy__list_init(&cache->nodes[i].retired);
	}
	cache->harden = (uint8_t)heap->tunables[heap->policy->harden];
	if (cache->harden & SY__HARDEN_ZERO && !cache->cache.constructor && !(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		cache->cleared = cache->cache.size;
	most = most > SY__RING ? SY__RING : most > LEAST_IN_RING ? most : LEAST_IN_RING;
	cache->kept = (uint16_t)most;
}

/* ---- Objects ---------------------------------------------------------------------------------------------------------- */

SY__COLD void *sy__node_damaged(const struct sy__node_cache *cache, const void *object)
{
	sy__bug(cache->cache.heap, SY_BUG_WRITE_AFTER_FREE, object);
	return NULL;
}

/* An object that is not free may hold a right link by chance, but then it hardly leads to another object. */
SY__COLD bool sy__node_may_be_freed(const struct sy__node_cache *cache, struct sy_page *head, const void *object)
{
	struct sy_heap *heap = cache->cache.heap;
	uint64_t holds;

	if (sy__page_is_slab(head) && sy__node_slab(head)->cache != &cache->cache &&
	    sy__node_is_object(sy__node_cache(sy__node_slab(head)->cache), head, object)) {
		sy__bug(heap, SY_BUG_WRONG_CACHE, object);
		return false;
	}
	if (!sy__node_is_object(cache, head, object)) {
		sy__bug_free(heap, object);
		return false;
	}
	if (!sy__node_is_place(cache, head, object)) {
		sy__bug(heap, sy__node_slab(head)->linked ? SY_BUG_FOREIGN_FREE : SY_BUG_DOUBLE_FREE, object);
		return false;
	}
	holds = sy__link_read(&cache->links, object, cache->offset);
	if (holds && holds != SY__IN_RING &&
	    !(sy__link_is_right(holds) && sy__node_slab_of(cache, sy__link_end(&cache->links, holds))))
		return true;
	sy__bug(heap, SY_BUG_DOUBLE_FREE, object);
	return false;
}

SY__COLD void *sy__ring_lose(struct sy__ring *own)
{
	const void *object = own->objects[own->oldest];

	sy__ring_left(own, 1);
	return sy__node_damaged(own->cache, object);
}

void *sy__node_dismiss(struct sy__ring *own)
{
	void *object = NULL;

	while (sy__ring_held(own) && !object)
		object = sy__ring_pop(own);
	return object;
}

static const struct sy__ring *ring_of(const struct sy__node_cache *cache, ptrdiff_t slot_offset)
{
	return (const struct sy__ring *)(const void *)(cache->slots + slot_offset + cache->ring);
}

static void count_ring(struct sy_cache_counts *counts, const struct sy__ring *own)
{
	counts->objects_in_use -= sy__ring_held(own);
	counts->objects_cached += sy__ring_held(own);
}

/* Whether the ring's objects are in slabs of the cache, and marked. */
static bool ring_is_sound(const struct sy__node_cache *cache, const struct sy__ring *own)
{
	uint32_t held = sy__ring_held(own);

	if (own->cache ? own->cache != cache || !own->room || held > cache->kept || (own->oldest + held) % SY__RING != own->next
	               : own->room || own->serves)
		return false;
	for (uint32_t i = 0; i < held; i++) {
		const void *object = own->objects[(own->oldest + i) % SY__RING];

		if (!sy__node_slab_of(cache, object) || sy__link_read(&cache->links, object, cache->offset) != SY__IN_RING)
			return false;
	}
	return true;
}

/* NULL, or what is wrong with the slots' rings. The dummy slot has none. */
static const char *check_rings(const struct sy__node_cache *cache)
{
	if (cache->cache.heap->threads && ring_of(cache, SY__DUMMY_OFFSET)->cache)
		return "slabs: the slot in which nothing may ever be has a ring";
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++)
		if (!ring_is_sound(cache, ring_of(cache, (ptrdiff_t)(slot * cache->stride))))
			return "slabs: what a slot has in its ring is not marked, or not in use";
	return NULL;
}

static void mark_rings(struct sy__walk *walk, const struct sy__node_cache *cache)
{
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		const struct sy__ring *own = ring_of(cache, (ptrdiff_t)(slot * cache->stride));

		for (uint32_t i = 0; sy__slot_reachable(&cache->cache, slot) && i < sy__ring_held(own); i++)
			sy__walk_mark(walk, own->objects[(own->oldest + i) % SY__RING], SY_PART_SLOT, "ring", slot, i);
	}
}

/* Numbers from 0 on in random order. If n + 1 follows n, the two change places, which makes no other such pair. */
static void shuffle(uint8_t *order, uint32_t count, uint64_t *random)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t other = sy__random_below(random, i + 1);

		order[i] = order[other];
		order[other] = (uint8_t)i;
	}
	for (uint32_t i = 1; i < count; i++)
		if (order[i] == order[i - 1] + 1) {
			order[i - 1]++;
			order[i]--;
		}
}

/* Puts `objects` objects, SHUFFLED at most, in front of a list. */
static void *link_shuffled(const struct sy__node_cache *cache, uint64_t *random, char *first, uint32_t objects, void *behind)
{
	uint8_t order[SHUFFLED];

	shuffle(order, objects, random);
	while (objects--) {
		void *object = first + order[objects] * (size_t)cache->cache.size;

		sy__node_link(cache, object, behind);
		behind = object;
	}
	return behind;
}

static void *link_in_order(const struct sy__node_cache *cache, char *first, uint32_t objects, void *behind)
{
	while (objects--) {
		char *object = first + objects * (size_t)cache->cache.size;

		sy__node_link(cache, object, behind);
		behind = object;
	}
	return behind;
}

void *sy__node_link_row(const struct sy__node_cache *cache, struct sy__ring *own, char *first, uint32_t objects, void *behind)
{
	uint32_t size = cache->cache.size, near = size > SHUFFLED_BYTES ? SHUFFLED : SHUFFLED_BYTES / size;
	struct sy__node_slab *slab = sy__node_slab(sy__node_head(cache, first));

	__atomic_store_n(&slab->linked, (uint16_t)(slab->linked + objects), __ATOMIC_RELAXED);
	near = near < LEAST_SHUFFLED ? LEAST_SHUFFLED : near;
	sy__ring_begin(cache, own);
	if (!(cache->harden & SY__HARDEN_RANDOM))
		return link_in_order(cache, first, objects, behind);
	while (objects) {
		uint32_t count = objects % near ? objects % near : near;

		objects -= count;
		behind = link_shuffled(cache, &own->random, first + objects * (size_t)cache->cache.size, count, behind);
	}
	return behind;
}

/* ---- Slabs that end ------------------------------------------------------------------------------------------------------ */

/* Clears the links of all objects of an empty slab that were ever linked. False: not all are on its list, and the slab is abandoned. */
static bool unlink_all(const struct sy__node_cache *cache, struct sy_page *page)
{
	uint32_t left = sy__node_slab(page)->linked;
	void *at = sy__node_freelist(cache, page), *last = at;

	for (; at && left && sy__node_in_slab(cache, page, at); left--) {
		last = at;
		at = sy__link_take(cache, at, cache->offset);
		if (sy__link_is_wrong(at))
			return sy__node_damaged(cache, last);
	}
	if (sy__unlikely(at || left))
		sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, last);
	else
		sy__node_slab(page)->linked = 0;
	return !at && !left;
}

static void count_retired(struct sy__node *node, const struct sy__node_cache *cache, const struct sy_page *page, bool more)
{
	uint64_t sign = more ? 1 : UINT64_MAX;

	node->retired_slabs += sign;
	node->retired_pages += sign << sy__page_order(page);
	node->retired_objects += sign * sy__order_objects(sy__page_order(page), cache->cache.size);
}

static void retire(struct sy__node_cache *cache, struct sy_page *page)
{
	struct sy__node *node = sy__node_of(cache, page);

	sy__lock(&node->lock);
	sy__node_slab(page)->word = SY__WORD_RETIRED;
	sy__list_add_tail(&node->retired, &sy__node_slab(page)->link);
	count_retired(node, cache, page, true);
	sy__unlock(&node->lock);
}

static struct sy_page *take_retired(struct sy__node_cache *cache, unsigned from)
{
	struct sy__node *node = &cache->nodes[from];
	struct sy_page *page = NULL;

	sy__lock(&node->lock);
	if (!sy__list_empty(&node->retired)) {
		page = sy__node_linked(node->retired.prev);
		sy__list_remove(node->retired.prev);
		count_retired(node, cache, page, false);
	}
	sy__unlock(&node->lock);
	for (size_t i = 0; page && cache->cache.heap->threads && i < (size_t)1 << sy__page_order(page); i++)
		sy__page_refill(cache->cache.heap, page + i);
	return page;
}

/* Whether a slab joins its node's list at the head. If not, one with objects in use joins second, and one without joins at the end, as it
 * is to serve last. */
static bool place_at_head(const struct sy__node_cache *cache, struct sy__node *node, uint64_t word, bool at_head)
{
	if (cache->harden & SY__HARDEN_RANDOM)
		at_head = sy__random_below(&node->random, 2);
	return sy__list_empty(&node->partial) || (sy__word_in_use(word) && (at_head || !sy__node_in_use(sy__node_linked(node->partial.next))));
}

static void give_retired(struct sy__node_cache *cache)
{
	for (unsigned i = 0; i < cache->cache.heap->nodes; i++)
		for (struct sy_page *page; (page = take_retired(cache, i));)
			sy__pages_give(cache->cache.heap, 0, page);
}

static uint64_t empty(struct sy_heap *heap, struct sy_page *page)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < (size_t)1 << sy__page_order(page); i++)
		pages += sy__page_empty(heap, page + i);
	return pages;
}

uint64_t sy__node_empty_retired(struct sy__node_cache *cache)
{
	uint64_t pages = 0;

	for (unsigned i = 0; cache->harden & SY__HARDEN_APART && cache->cache.heap->threads && i < cache->cache.heap->nodes; i++) {
		struct sy__node *node = &cache->nodes[i];

		pages += give_unused(cache, 0, node);
		sy__lock(&node->lock);
		for (struct sy_list *at = node->retired.next; at != &node->retired; at = at->next)
			pages += empty(cache->cache.heap, sy__node_linked(at));
		sy__unlock(&node->lock);
	}
	return pages;
}
