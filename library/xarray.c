/*
 * Pointers by number (linux/xarray.h): a tree of tables of 64 slots, each level of which is for six bits of the number. The
 * tree is as high as its largest number asks for, and its tables are of a cache of their own.
 *
 * Four sets of bits of a table say of each slot: whether it, or something below, has one of the three marks; and whether it is
 * taken, of a table below: whether all of that is. So the next one with a mark, and the first free number, are found on one way
 * down.
 *
 * Writers hold the lock. Readers need none: a table is complete before it is linked, and one that was taken out is freed when
 * readers have done (linux/rcupdate.h). Its slots stay as they were, so a reader who is in it finds what was there.
 */
#include <slabyard/kernel/linux/bitops.h>
#include <slabyard/kernel/linux/xarray.h>

#include <pthread.h>

#define SHIFT 6u
#define SLOTS (1u << SHIFT)
#define LEVELS ((BITS_PER_LONG + SHIFT - 1) / SHIFT)
#define MARKS 3
#define WORDS BITS_TO_LONGS(SLOTS)

enum set { TAKEN = MARKS, SETS };

struct table {
	unsigned shift, count; /* of the number's bits, to this level's six; slots that are not NULL */
	unsigned long sets[SETS][WORDS];
	struct rcu_head rcu;
	void *slots[SLOTS];
};

/* From the root to a slot of the last level. */
struct way {
	struct table *tables[LEVELS];
	unsigned depth;
};

static struct kmem_cache *tables;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static void make_cache(void)
{
	tables = kmem_cache_create("radix_tree_node", sizeof(struct table), 0, SLAB_RECLAIM_ACCOUNT, NULL);
}

static struct table *new_table(unsigned shift, gfp_t flags)
{
	struct table *table;

	pthread_once(&once, make_cache);
	table = tables ? kmem_cache_zalloc(tables, flags) : NULL;
	if (table)
		table->shift = shift;
	return table;
}

static void free_table(struct rcu_head *head)
{
	kmem_cache_free(tables, container_of(head, struct table, rcu));
}

static unsigned slot_of(const struct table *table, unsigned long index)
{
	return index >> table->shift & (SLOTS - 1);
}

/* Whether the tree below a table has that number. */
static bool covers(const struct table *table, unsigned long index)
{
	return table->shift + SHIFT >= BITS_PER_LONG || index >> (table->shift + SHIFT) == 0;
}

static void *load(void *const *slot)
{
	return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

static void store(void **slot, void *what)
{
	__atomic_store_n(slot, what, __ATOMIC_RELEASE);
}

/* ---- Sets -------------------------------------------------------------------------------------------------------- */

static bool has(const struct table *table, unsigned set, unsigned slot)
{
	return __atomic_load_n(&table->sets[set][BIT_WORD(slot)], __ATOMIC_RELAXED) >> slot % BITS_PER_LONG & 1;
}

/* Every slot of a table that stands for what is below counts in its own. */
static bool stands_for(const struct table *table, unsigned set)
{
	unsigned long all = ~0UL, any = 0;

	for (unsigned i = 0; i < WORDS; i++) {
		all &= table->sets[set][i];
		any |= table->sets[set][i];
	}
	return set == TAKEN ? all == ~0UL : any != 0;
}

static void note(struct table *table, unsigned set, unsigned slot, bool so)
{
	unsigned long *word = &table->sets[set][BIT_WORD(slot)];

	__atomic_store_n(word, so ? *word | BIT_MASK(slot) : *word & ~BIT_MASK(slot), __ATOMIC_RELAXED);
}

/* In the last table of a way, and in those above as far as that changes what they have of it. */
static void note_up(const struct way *way, unsigned long index, unsigned set, bool so)
{
	for (unsigned i = way->depth; i--; so = stands_for(way->tables[i], set)) {
		unsigned slot = slot_of(way->tables[i], index);

		if (has(way->tables[i], set, slot) == so)
			return;
		note(way->tables[i], set, slot, so);
	}
}

/* ---- Ways -------------------------------------------------------------------------------------------------------- */

/* As far down as there are tables; true: to the last. */
static bool go_down(struct xarray *xa, unsigned long index, struct way *way)
{
	struct table *table = load(&xa->xa_head);

	way->depth = 0;
	if (!table || !covers(table, index))
		return false;
	while (table) {
		way->tables[way->depth++] = table;
		if (!table->shift)
			return true;
		table = load(&table->slots[slot_of(table, index)]);
	}
	return false;
}

/* A new root above the old, until the tree has that number. */
static bool grow(struct xarray *xa, unsigned long index, gfp_t flags)
{
	struct table *head = xa->xa_head;
	unsigned shift = 0;

	while (!head && shift + SHIFT < BITS_PER_LONG && index >> (shift + SHIFT))
		shift += SHIFT;
	while (!head || !covers(head, index)) {
		struct table *root = new_table(head ? head->shift + SHIFT : shift, flags);

		if (!root)
			return false;
		if (head) {
			root->slots[0] = head;
			root->count = 1;
			for (unsigned set = 0; set < SETS; set++)
				note(root, set, 0, stands_for(head, set));
		}
		store(&xa->xa_head, root);
		head = root;
	}
	return true;
}

/* Tables without a slot in use go, and roots that only lead on. */
static void prune(struct xarray *xa, struct way *way, unsigned long index)
{
	struct table *head;

	while (way->depth && !way->tables[way->depth - 1]->count) {
		struct table *empty = way->tables[--way->depth];

		if (way->depth) {
			struct table *above = way->tables[way->depth - 1];

			store(&above->slots[slot_of(above, index)], NULL);
			above->count--;
		} else {
			store(&xa->xa_head, NULL);
		}
		call_rcu(&empty->rcu, free_table);
	}
	while ((head = xa->xa_head) && head->shift && head->count == 1 && head->slots[0]) {
		store(&xa->xa_head, head->slots[0]);
		call_rcu(&head->rcu, free_table);
	}
}

static bool make_way(struct xarray *xa, unsigned long index, struct way *way, gfp_t flags)
{
	if (!grow(xa, index, flags))
		return false;
	while (!go_down(xa, index, way)) {
		struct table *last = way->tables[way->depth - 1], *next = new_table(last->shift - SHIFT, flags);

		if (!next)
			return false;
		store(&last->slots[slot_of(last, index)], next);
		last->count++;
	}
	return true;
}

/* ---- Writers ----------------------------------------------------------------------------------------------------- */

static void *erase(struct xarray *xa, unsigned long index)
{
	struct table *last;
	struct way way;
	void **slot, *was;

	if (!go_down(xa, index, &way))
		return NULL;
	last = way.tables[way.depth - 1];
	slot = &last->slots[slot_of(last, index)];
	was = *slot;
	if (!was)
		return NULL;
	store(slot, NULL);
	last->count--;
	for (unsigned set = 0; set < SETS; set++)
		note_up(&way, index, set, false);
	prune(xa, &way, index);
	return was;
}

void *sy__xa_store(struct xarray *xa, unsigned long index, void *entry, gfp_t flags)
{
	struct way way = { .depth = 0 };
	struct table *last;
	void **slot, *was;

	if (!entry)
		return erase(xa, index);
	if (!make_way(xa, index, &way, flags)) {
		prune(xa, &way, index);
		return XA_ERROR(-ENOMEM);
	}
	last = way.tables[way.depth - 1];
	slot = &last->slots[slot_of(last, index)];
	was = *slot;
	store(slot, entry);
	if (!was) {
		last->count++;
		note_up(&way, index, TAKEN, true);
	}
	return was;
}

void sy__xa_mark(struct xarray *xa, unsigned long index, xa_mark_t mark, bool set)
{
	struct way way;

	if (go_down(xa, index, &way) && sy__xa_get(xa, index))
		note_up(&way, index, mark, set);
}

/* Numbers that start with those of a table's slot, from that slot's first on. */
static bool step_over(const struct table *table, unsigned long *index)
{
	unsigned long next = (*index >> table->shift) + 1;

	*index = next << table->shift;
	return *index >> table->shift == next && *index != 0;
}

bool sy__xa_find_free(struct xarray *xa, unsigned long *index, unsigned long max)
{
	while (*index <= max) {
		struct table *table = xa->xa_head;
		void *below = table;

		if (!table || !covers(table, *index))
			return true;
		while (below && !has(table, TAKEN, slot_of(table, *index)) && table->shift) {
			below = table->slots[slot_of(table, *index)];
			table = below ? below : table;
		}
		if (!below || !has(table, TAKEN, slot_of(table, *index)))
			return true;
		if (!step_over(table, index))
			return false;
	}
	return false;
}

int sy__xa_alloc(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, gfp_t flags)
{
	bool from_one = (xa->xa_flags & XA_FLAGS_ALLOC1) == XA_FLAGS_ALLOC1;
	unsigned long index = from_one && !limit.min ? 1 : limit.min;
	int error;

	if (!sy__xa_find_free(xa, &index, limit.max))
		return -EBUSY;
	error = xa_err(sy__xa_store(xa, index, entry ? entry : XA_ZERO_ENTRY, flags));
	if (!error)
		*id = (u32)index;
	return error;
}

static void destroy(struct table *table)
{
	if (table->shift)
		for (unsigned i = 0; i < SLOTS; i++)
			if (table->slots[i])
				destroy(table->slots[i]);
	call_rcu(&table->rcu, free_table);
}

void sy__xa_destroy(struct xarray *xa)
{
	struct table *head = xa->xa_head;

	store(&xa->xa_head, NULL);
	if (head)
		destroy(head);
}

/* ---- Readers ----------------------------------------------------------------------------------------------------- */

void *sy__xa_get(struct xarray *xa, unsigned long index)
{
	struct table *last;
	struct way way;
	void *entry = NULL;

	rcu_read_lock();
	if (go_down(xa, index, &way)) {
		last = way.tables[way.depth - 1];
		entry = load(&last->slots[slot_of(last, index)]);
	}
	rcu_read_unlock();
	return entry;
}

bool sy__xa_marked_at(struct xarray *xa, unsigned long index, xa_mark_t mark)
{
	struct way way;
	bool marked;

	rcu_read_lock();
	marked = go_down(xa, index, &way) && has(way.tables[way.depth - 1], mark, slot_of(way.tables[way.depth - 1], index));
	rcu_read_unlock();
	return marked;
}

bool sy__xa_marked(struct xarray *xa, xa_mark_t mark)
{
	struct table *head;
	bool marked;

	rcu_read_lock();
	head = load(&xa->xa_head);
	marked = false;
	for (unsigned i = 0; head && i < WORDS; i++)
		marked |= __atomic_load_n(&head->sets[mark][i], __ATOMIC_RELAXED) != 0;
	rcu_read_unlock();
	return marked;
}

/* The entry at a number, if it is one to be found; or NULL, and the table that the way ends in. */
static void *look(struct table *table, unsigned long index, xa_mark_t mark, struct table **end)
{
	void *below = table;

	*end = table;
	while (below && (mark == XA_PRESENT || has(*end, mark, slot_of(*end, index)))) {
		below = load(&(*end)->slots[slot_of(*end, index)]);
		if (!(*end)->shift)
			return xa_is_zero(below) ? NULL : below;
		if (below)
			*end = below;
	}
	return NULL;
}

void *sy__xa_next(struct xarray *xa, unsigned long *index, unsigned long max, xa_mark_t mark)
{
	unsigned long at = *index;
	void *entry = NULL;

	rcu_read_lock();
	while (at <= max) {
		struct table *head = load(&xa->xa_head), *end;

		if (!head || !covers(head, at))
			break;
		entry = look(head, at, mark, &end);
		if (entry || !step_over(end, &at))
			break;
	}
	rcu_read_unlock();
	if (entry)
		*index = at;
	return entry;
}
