/*
 * Bonwick's slab allocator: from a large object's buffer to its bufctl (section 3.2.3).
 *
 * Each cache of large objects has a hash table with chains through the bufctls. It has the buffers that are out. A bufctl is
 * either on the freelist of its slab or in the table, so one link serves both. New bufctls go to the front of their chain, as
 * what was allocated last is often freed first.
 *
 * The hash of an address is its bits from the highest bit of the object size on. Buffers of one slab lie at least that far apart,
 * so they fall into different buckets.
 *
 * The table scales. If the cache has more than two buffers per bucket, or fewer than one for eight buckets, the next growth of the
 * cache first makes a table with about as many buckets as buffers. If there is no memory for one, the old table serves on.
 * The smallest table, of 16 buckets, is part of the cache, so creating a cache never fails here. Shrinking goes back to it, which
 * takes no memory, once at most two buffers for each of its buckets are left.
 *
 * Lock: the table is under its cache's lock. The memory of a table is taken and given back without it.
 */
#include "../../geometry.h"
#include "../../backend/metadata.h"
#include "bonwick.h"

#define MOST_BUCKETS ((SY_PAGE_SIZE << SY_MAX_ORDER) / sizeof(struct sy__bonwick_bufctl *))

static struct sy__bonwick_bufctl **bucket(const struct sy__bonwick_hash *hash, const void *buffer)
{
	return &hash->buckets[((uintptr_t)buffer >> hash->shift) & (hash->size - 1)];
}

void sy__bonwick_hash_init(struct sy__bonwick_hash *hash, uint32_t object_size)
{
	hash->size = SY__BONWICK_LEAST_BUCKETS;
	hash->shift = sy__highest_bit(object_size) - 1;
	hash->buckets = hash->least;
}

void sy__bonwick_hash_insert(struct sy__bonwick_hash *hash, struct sy__bonwick_bufctl *bufctl)
{
	struct sy__bonwick_bufctl **chain = bucket(hash, bufctl->buffer);

	bufctl->next = *chain;
	*chain = bufctl;
}

struct sy__bonwick_bufctl *sy__bonwick_hash_find(const struct sy__bonwick_hash *hash, const void *buffer)
{
	struct sy__bonwick_bufctl *at = *bucket(hash, buffer);

	while (at && at->buffer != buffer)
		at = at->next;
	return at;
}

/* The buffer is in the table. */
struct sy__bonwick_bufctl *sy__bonwick_hash_remove(struct sy__bonwick_hash *hash, const void *buffer)
{
	struct sy__bonwick_bufctl **at = bucket(hash, buffer), *bufctl;

	while (*at && (*at)->buffer != buffer)
		at = &(*at)->next;
	bufctl = *at;
	if (sy__likely(bufctl))
		*at = bufctl->next;
	return bufctl;
}

/* ---- Scaling -------------------------------------------------------------------------------------------------- */

/* A table whose memory is to be given back once the lock is released. */
struct old_table {
	struct sy__bonwick_bufctl **buckets; /* NULL: none */
	uint32_t size;
};

static size_t table_bytes(uint32_t size)
{
	return size * sizeof(struct sy__bonwick_bufctl *);
}

/* Moves all chains to new, empty buckets. With the cache's lock held. */
static struct old_table move_to(struct sy__bonwick_hash *hash, struct sy__bonwick_bufctl **buckets, uint32_t size)
{
	struct old_table old = { hash->buckets, hash->size };

	hash->buckets = buckets;
	hash->size = size;
	for (uint32_t i = 0; i < old.size; i++) {
		struct sy__bonwick_bufctl *at = old.buckets[i];

		old.buckets[i] = NULL;
		while (at) {
			struct sy__bonwick_bufctl *next = at->next;

			sy__bonwick_hash_insert(hash, at);
			at = next;
		}
	}
	if (old.buckets == hash->least)
		old.buckets = NULL;
	return old;
}

static void give_back(struct sy__bonwick_cache *cache, struct old_table old)
{
	sy__metadata_give(cache->cache.heap, old.buckets, table_bytes(old.size));
}

static bool fits(const struct sy__bonwick_hash *hash, uint64_t buffers)
{
	return (buffers <= 2ull * hash->size || hash->size >= MOST_BUCKETS) &&
	       (buffers >= hash->size / 8 || hash->size == SY__BONWICK_LEAST_BUCKETS);
}

/* Number of buckets that suits one more slab; 0: the present number does. */
static uint32_t wanted_size(struct sy__bonwick_cache *cache)
{
	uint32_t size = 0;
	uint64_t buffers;

	sy__lock(&cache->lock);
	buffers = (cache->slab_count + 1) * cache->objects;
	if (!fits(&cache->hash, buffers))
		for (size = SY__BONWICK_LEAST_BUCKETS; size < buffers && size < MOST_BUCKETS; size *= 2)
			;
	sy__unlock(&cache->lock);
	return size;
}

void sy__bonwick_hash_scale(struct sy__bonwick_cache *cache)
{
	uint32_t size = wanted_size(cache);
	struct old_table old = { NULL, size };
	struct sy__bonwick_bufctl **buckets;

	if (size <= SY__BONWICK_LEAST_BUCKETS)
		return;
	buckets = sy__metadata_take(cache->cache.heap, table_bytes(size));
	if (!buckets)
		return;
	sy__lock(&cache->lock);
	if (size != cache->hash.size)
		old = move_to(&cache->hash, buckets, size);
	else
		old.buckets = buckets; /* another thread scaled it meanwhile */
	sy__unlock(&cache->lock);
	give_back(cache, old);
}

/* Goes back to the smallest table, if that will do. */
void sy__bonwick_hash_least(struct sy__bonwick_cache *cache)
{
	struct sy__bonwick_hash *hash = &cache->hash;
	struct old_table old = { NULL, 0 };

	sy__lock(&cache->lock);
	if (hash->buckets != hash->least && cache->slab_count * cache->objects <= 2 * SY__BONWICK_LEAST_BUCKETS)
		old = move_to(hash, hash->least, SY__BONWICK_LEAST_BUCKETS);
	sy__unlock(&cache->lock);
	give_back(cache, old);
}
