/*
 * What node.c does besides in a hardened heap: see links.h. Included by node.c alone.
 *
 * A retired slab stays in its node's list of such, under the node's lock, until its cache needs a slab. Meanwhile
 * sy__node_empty_retired gives its memory back; the addresses stay.
 */
#define QUARANTINE_BYTES ((size_t)64 << 10) /* of objects that a slot keeps of a cache, */
#define LEAST_QUARANTINED 2u                /* but so many at least */
#define SHUFFLED 64u                        /* objects of a new slab that are in random order among themselves */

/* The next of a row of random numbers (splitmix64; Steele, Lea and Flood 2014). */
static uint64_t next_number(uint64_t *state)
{
	uint64_t number = *state += UINT64_C(0x9e3779b97f4a7c15);

	number = (number ^ number >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	number = (number ^ number >> 27) * UINT64_C(0x94d049bb133111eb);
	return number ^ number >> 31;
}

/* Of a new cache. */
static void harden(struct sy__node_cache *cache)
{
	const struct sy_heap *heap = cache->cache.heap;
	uint64_t state = heap->concurrent ? sy__random() : cache->cache.size;
	size_t most = QUARANTINE_BYTES / cache->cache.size;

	for (unsigned i = 0; i < 3; i++)
		cache->secrets[i] = next_number(&state) | (i > 0);
	for (unsigned i = 0; i < heap->nodes; i++) {
		cache->nodes[i].random = next_number(&state);
		sy__list_init(&cache->nodes[i].retired);
	}
	cache->harden = (uint8_t)heap->tunables[heap->policy->harden];
	cache->zeroes = cache->harden & SY__HARDEN_ZERO && !cache->cache.constructor && !(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU);
	most = most > SY__QUARANTINED ? SY__QUARANTINED : most > LEAST_QUARANTINED ? most : LEAST_QUARANTINED;
	cache->quarantined = (uint16_t)(cache->harden & SY__HARDEN_QUARANTINE ? most : 0);
}

/* ---- Objects ---------------------------------------------------------------------------------------------------------- */

SY__COLD void *sy__node_damaged(const struct sy__node_cache *cache, const void *object)
{
	sy__bug(cache->cache.heap, SY_BUG_WRITE_AFTER_FREE, object);
	return NULL;
}

/* A right link in an object that is not free would be a program's by chance, and then seldom lead to another object. */
SY__COLD bool sy__node_may_be_freed(const struct sy__node_cache *cache, struct sy_page *head, const void *object)
{
	struct sy_heap *heap = cache->cache.heap;
	int64_t way;

	if (sy__page_is_slab(head) && sy__node_slab(head)->cache != &cache->cache &&
	    sy__node_is_object(sy__node_cache(sy__node_slab(head)->cache), head, object)) {
		sy__bug(heap, SY_BUG_WRONG_CACHE, object);
		return false;
	}
	if (!sy__node_is_object(cache, head, object)) {
		sy__bug_free(heap, object);
		return false;
	}
	if (sy__link_read(cache, object, cache->offset, &way) && way && way != SY__IN_QUARANTINE &&
	    !sy__node_slab_of(cache, sy__link_end(object, way)))
		return true;
	sy__bug(heap, SY_BUG_DOUBLE_FREE, object);
	return false;
}

void *sy__node_dismiss(const struct sy__node_cache *cache, struct sy__quarantine *own)
{
	for (unsigned i = 0; own->held && i < SY__QUARANTINED; i++) {
		void *object = own->objects[i];

		if (!object)
			continue;
		own->objects[i] = NULL;
		own->held--;
		return sy__node_unmark(cache, object) ? object : sy__node_damaged(cache, object);
	}
	return NULL;
}

bool sy__node_quarantine_is_sound(const struct sy__node_cache *cache, const struct sy__quarantine *own)
{
	uint64_t held = 0;

	for (unsigned i = 0; i < SY__QUARANTINED; i++) {
		int64_t way;

		if (!own->objects[i])
			continue;
		if (!sy__node_slab_of(cache, own->objects[i]) || !sy__link_read(cache, own->objects[i], cache->offset, &way) ||
		    way != SY__IN_QUARANTINE)
			return false;
		held++;
	}
	return held == own->held;
}

void sy__node_walk_quarantine(struct sy__walk *walk, const struct sy__quarantine *own, unsigned slot)
{
	for (unsigned i = 0; i < SY__QUARANTINED; i++)
		if (own->objects[i])
			sy__walk_mark(walk, own->objects[i], SY_PART_SLOT, "quarantine", slot, i);
}

/* Puts so many objects, SHUFFLED at most, in front of a list. */
static void *link_shuffled(const struct sy__node_cache *cache, uint64_t *random, char *first, uint32_t objects, void *behind)
{
	uint8_t order[SHUFFLED];

	for (uint32_t i = 0; i < objects; i++) {
		uint32_t other = cache->harden & SY__HARDEN_RANDOM ? sy__random_below(random, i + 1) : i;

		order[i] = order[other];
		order[other] = (uint8_t)i;
	}
	while (objects--) {
		void *object = first + order[objects] * (size_t)cache->cache.size;

		sy__node_link(cache, object, behind);
		behind = object;
	}
	return behind;
}

void *sy__node_link_row(const struct sy__node_cache *cache, struct sy__quarantine *own, char *first, uint32_t objects, void *behind)
{
	sy__quarantine_begin(cache, own);
	while (objects) {
		uint32_t count = objects % SHUFFLED ? objects % SHUFFLED : SHUFFLED;

		objects -= count;
		behind = link_shuffled(cache, &own->random, first + objects * (size_t)cache->cache.size, count, behind);
	}
	return behind;
}

/* ---- Slabs that end ------------------------------------------------------------------------------------------------------ */

/* Takes the links away from all objects of an empty slab. False: not all are on its list, and it is abandoned. */
static bool unlink_all(const struct sy__node_cache *cache, struct sy_page *page)
{
	uint32_t left = sy__node_objects(page);
	void *at = sy__node_freelist(cache, page), *last = at;

	for (; at && left && sy__node_in_slab(cache, page, at); left--) {
		last = at;
		at = sy__link_take(cache, at, cache->offset);
		if (sy__link_is_wrong(at))
			return sy__node_damaged(cache, last);
	}
	if (sy__unlikely(at || left))
		sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, last);
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

	for (unsigned i = 0; cache->cache.heap->threads && i < cache->cache.heap->nodes; i++) {
		struct sy__node *node = &cache->nodes[i];

		sy__lock(&node->lock);
		for (struct sy_list *at = node->retired.next; at != &node->retired; at = at->next)
			pages += empty(cache->cache.heap, sy__node_linked(at));
		sy__unlock(&node->lock);
	}
	return pages;
}
