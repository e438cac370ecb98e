/*
 * Data structures that kernel code finds in its headers and keeps its objects in: trees, tables by number, hash tables, rings, sets of bits, lists
 * that are sorted; and text. Against models, with random operations. Run under some policies.
 */
#include <linux/bitmap.h>
#include <linux/hashtable.h>
#include <linux/idr.h>
#include <linux/jhash.h>
#include <linux/kfifo.h>
#include <linux/kstrtox.h>
#include <linux/list_sort.h>
#include <linux/llist.h>
#include <linux/radix-tree.h>
#include <linux/random.h>
#include <linux/rbtree_augmented.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/xarray.h>

#include "check.h"

#define KEYS 600
#define STEPS 20000

static struct rnd_state state;

static unsigned below(unsigned limit)
{
	return prandom_u32_state(&state) % limit;
}

/* ---- Trees ------------------------------------------------------------------------------------------------------- */

struct leaf {
	struct rb_node node;
	unsigned key, value, most;
};

static struct leaf leaves[KEYS];
static bool in_tree[KEYS];

#define value_of(leaf) ((leaf)->value)
RB_DECLARE_CALLBACKS_MAX(static, leaf_callbacks, struct leaf, node, unsigned, most, value_of)

static struct leaf *leaf_of(const struct rb_node *node)
{
	return container_of(node, struct leaf, node);
}

/* Black nodes on any way down, or 0: there is none such number, or a red node has a red child, or the kept value is wrong. */
static unsigned black_depth(const struct rb_node *node, bool augmented)
{
	unsigned left, right, most;

	if (!node)
		return 1;
	left = black_depth(node->rb_left, augmented);
	right = black_depth(node->rb_right, augmented);
	most = leaf_of(node)->value;
	if (node->rb_left)
		most = max(most, leaf_of(node->rb_left)->most);
	if (node->rb_right)
		most = max(most, leaf_of(node->rb_right)->most);
	if (!left || left != right || (augmented && most != leaf_of(node)->most))
		return 0;
	if ((node->rb_left && rb_parent(node->rb_left) != node) || (node->rb_right && rb_parent(node->rb_right) != node))
		return 0;
	if (node->__rb_parent_color & RB_BLACK)
		return left + 1;
	return (node->rb_left && !(node->rb_left->__rb_parent_color & RB_BLACK)) ||
	                       (node->rb_right && !(node->rb_right->__rb_parent_color & RB_BLACK))
	               ? 0
	               : left;
}

static void add_leaf(struct rb_root_cached *root, struct leaf *leaf, bool augmented)
{
	struct rb_node **link = &root->rb_root.rb_node, *parent = NULL;
	bool leftmost = true;

	leaf->most = leaf->value = below(1000);
	while (*link) {
		parent = *link;
		if (augmented && leaf_of(parent)->most < leaf->value)
			leaf_of(parent)->most = leaf->value;
		if (leaf->key < leaf_of(parent)->key) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			leftmost = false;
		}
	}
	rb_link_node(&leaf->node, parent, link);
	if (augmented)
		rb_insert_augmented_cached(&leaf->node, root, leftmost, &leaf_callbacks);
	else
		rb_insert_color_cached(&leaf->node, root, leftmost);
}

static void check_order(const struct rb_root_cached *root)
{
	struct rb_node *node = rb_first_cached(root), *last = NULL;

	CHECK(node == rb_first(&root->rb_root));
	for (unsigned key = 0; key < KEYS; key++) {
		if (!in_tree[key])
			continue;
		CHECK(node == &leaves[key].node);
		if (!node)
			return;
		CHECK(rb_prev(node) == last);
		last = node;
		node = rb_next(node);
	}
	CHECK(!node && last == rb_last(&root->rb_root));
}

static void grow_and_fell(bool augmented)
{
	struct rb_root_cached root = RB_ROOT_CACHED;
	struct leaf *leaf, *next, spare;
	unsigned seen = 0, kept = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned key = below(KEYS);

		leaves[key].key = key;
		if (!in_tree[key])
			add_leaf(&root, &leaves[key], augmented);
		else if (augmented)
			rb_erase_augmented_cached(&leaves[key].node, &root, &leaf_callbacks);
		else
			rb_erase_cached(&leaves[key].node, &root);
		in_tree[key] = !in_tree[key];
		if (step % 64 == 0) {
			CHECK(black_depth(root.rb_root.rb_node, augmented) != 0);
			check_order(&root);
		}
	}
	leaf = leaf_of(root.rb_root.rb_node);
	spare = *leaf;
	rb_replace_node_cached(&leaf->node, &spare.node, &root);
	CHECK(root.rb_root.rb_node == &spare.node && rb_prev(rb_next(&spare.node)) == &spare.node);
	rb_replace_node_cached(&spare.node, &leaf->node, &root);
	rbtree_postorder_for_each_entry_safe(leaf, next, &root.rb_root, node) {
		seen++;
		in_tree[leaf->key] = !in_tree[leaf->key];
	}
	for (unsigned key = 0; key < KEYS; key++)
		kept += in_tree[key];
	CHECK(seen > KEYS / 4 && kept == 0);
}

static bool leaf_less(struct rb_node *one, const struct rb_node *other)
{
	return leaf_of(one)->key < leaf_of(other)->key;
}

static int compare_key(const void *key, const struct rb_node *node)
{
	return (int)*(const unsigned *)key - (int)leaf_of(node)->key;
}

static void found_by_key(void)
{
	struct rb_root root = RB_ROOT;
	struct rb_node *node;
	unsigned key = 7, equal = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		leaves[i].key = i % 50;
		rb_add(&leaves[i].node, &root, leaf_less);
	}
	rb_for_each(node, &key, &root, compare_key)
		equal++;
	CHECK_EQUAL(equal, KEYS / 50);
	key = 50;
	CHECK(rb_find(&key, &root, compare_key) == NULL);
}

/* ---- By number --------------------------------------------------------------------------------------------------- */

#define NUMBERS 40

/* Small ones, and such as make the tree high. */
static unsigned long number_of(unsigned i)
{
	return i < 20 ? i * 3UL : i < 30 ? 1UL << i : ULONG_MAX - (i - 30) * 65UL;
}

static void *of_number(unsigned i)
{
	return xa_mk_value(i + 1);
}

static void check_array(struct xarray *xa, const bool *there, const bool *marked)
{
	unsigned long index;
	unsigned count = 0, expected = 0;
	void *entry;

	for (unsigned i = 0; i < NUMBERS; i++) {
		CHECK(xa_load(xa, number_of(i)) == (there[i] ? of_number(i) : NULL));
		CHECK_EQUAL(xa_get_mark(xa, number_of(i), XA_MARK_1), marked[i]);
		expected += there[i];
	}
	xa_for_each(xa, index, entry) {
		CHECK_EQUAL(index, number_of((unsigned)xa_to_value(entry) - 1));
		count++;
	}
	CHECK_EQUAL(count, expected);
	xa_for_each_marked(xa, index, entry, XA_MARK_1) {
		CHECK(marked[xa_to_value(entry) - 1]);
		count--;
	}
	for (unsigned i = 0; i < NUMBERS; i++)
		count -= there[i] && !marked[i];
	CHECK_EQUAL(count, 0);
}

static void arrays(void)
{
	bool there[NUMBERS] = { false }, marked[NUMBERS] = { false };
	DEFINE_XARRAY(xa);

	for (unsigned step = 0; step < STEPS / 4; step++) {
		unsigned i = below(NUMBERS);

		switch (below(4)) {
		case 0:
			CHECK(xa_store(&xa, number_of(i), of_number(i), GFP_KERNEL) == (there[i] ? of_number(i) : NULL));
			there[i] = true;
			break;
		case 1:
			CHECK(xa_erase(&xa, number_of(i)) == (there[i] ? of_number(i) : NULL));
			there[i] = marked[i] = false;
			break;
		case 2:
			xa_set_mark(&xa, number_of(i), XA_MARK_1);
			marked[i] = there[i];
			break;
		default:
			CHECK_EQUAL(xa_insert(&xa, number_of(i), of_number(i), GFP_KERNEL), there[i] ? -EBUSY : 0);
			there[i] = true;
		}
		if (step % 16 == 0)
			check_array(&xa, there, marked);
	}
	for (unsigned i = 0; i < NUMBERS; i++)
		xa_erase(&xa, number_of(i));
	CHECK(xa_empty(&xa));
	CHECK_EQUAL(xa_reserve(&xa, 5, GFP_KERNEL), 0);
	CHECK(xa_load(&xa, 5) == NULL && !xa_empty(&xa));
	CHECK_EQUAL(xa_insert(&xa, 5, &xa, GFP_KERNEL), -EBUSY);
	CHECK(xa_cmpxchg(&xa, 5, NULL, &xa, GFP_KERNEL) == NULL && xa_load(&xa, 5) == &xa);
	xa_destroy(&xa);
	CHECK(xa_empty(&xa));
	CHECK_EQUAL(xa_err(XA_ERROR(-ENOMEM)), -ENOMEM);
	CHECK_EQUAL(xa_err(of_number(3)), 0);
}

/* Nothing is left of arrays that end with entries in them. */
static void ended_arrays(void)
{
	DEFINE_XARRAY(xa);
	const struct sy_heap *heap = sy_kmem_heap();
	uint64_t held = 0;

	for (unsigned i = 0; i < 200; i++) {
		for (unsigned long index = 0; index < 10; index++)
			CHECK(!xa_err(xa_store(&xa, index << 12, &xa, GFP_KERNEL)));
		xa_destroy(&xa);
		rcu_barrier();
		held = i ? held : heap->counters.slab_pages;
	}
	CHECK(heap->counters.slab_pages <= held + 16);
}

static int count_id(int id, void *pointer, void *sum)
{
	CHECK(pointer != NULL);
	*(int *)sum += id;
	return 0;
}

static void ids(void)
{
	static bool taken[3000];
	DEFINE_IDR(idr);
	DEFINE_IDA(ida);
	DEFINE_XARRAY_ALLOC1(from_one);
	int sum = 0, id;
	u32 number, next = 0;
	void *entry;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned which = below(3000), least = 0;

		if (below(3)) {
			while (least < 3000 && taken[least])
				least++;
			CHECK_EQUAL(idr_alloc(&idr, taken, 0, 3000, GFP_KERNEL), least < 3000 ? (int)least : -ENOSPC);
			if (least < 3000)
				taken[least] = true;
		} else {
			CHECK(idr_remove(&idr, which) == (taken[which] ? taken : NULL));
			taken[which] = false;
		}
	}
	idr_for_each(&idr, count_id, &sum);
	idr_for_each_entry(&idr, entry, id)
		sum -= id;
	CHECK_EQUAL(sum, 0);
	CHECK(IS_ERR(idr_replace(&idr, &sum, 5000)));
	idr_destroy(&idr);
	CHECK(idr_is_empty(&idr));
	CHECK_EQUAL(idr_alloc_cyclic(&idr, &sum, 3, 6, GFP_KERNEL), 3);
	CHECK_EQUAL(idr_alloc_cyclic(&idr, &sum, 3, 6, GFP_KERNEL), 4);
	idr_remove(&idr, 3);
	CHECK_EQUAL(idr_alloc_cyclic(&idr, &sum, 3, 6, GFP_KERNEL), 5);
	CHECK_EQUAL(idr_alloc_cyclic(&idr, &sum, 3, 6, GFP_KERNEL), 3);
	CHECK_EQUAL(idr_alloc_cyclic(&idr, &sum, 3, 6, GFP_KERNEL), -ENOSPC);
	idr_destroy(&idr);
	for (int i = 0; i < 1000; i++)
		CHECK_EQUAL(ida_alloc(&ida, GFP_KERNEL), i);
	ida_free(&ida, 77);
	CHECK_EQUAL(ida_alloc_max(&ida, 50, GFP_KERNEL), -ENOSPC);
	CHECK_EQUAL(ida_alloc_min(&ida, 10, GFP_KERNEL), 77);
	ida_destroy(&ida);
	CHECK_EQUAL(xa_alloc(&from_one, &number, &ida, xa_limit_32b, GFP_KERNEL), 0);
	CHECK_EQUAL(number, 1);
	CHECK_EQUAL(xa_alloc_cyclic(&from_one, &number, NULL, XA_LIMIT(1, 2), &next, GFP_KERNEL), 0);
	CHECK_EQUAL(number, 2);
	CHECK_EQUAL(xa_alloc(&from_one, &number, &ida, XA_LIMIT(1, 2), GFP_KERNEL), -EBUSY);
	xa_destroy(&from_one);
}

/* Of core/pages/pages.h, which is not for kernel code. */
void sy_pages_fail_after(struct sy_pages *, uint64_t requests);

static void places_in_arrays(void)
{
	DEFINE_XARRAY(xa);
	XA_STATE(xas, &xa, 5);
	unsigned long sum = 0;
	void *entry;

	for (unsigned long i = 0; i < 3; i++) {
		xas_set(&xas, 5 + i * 100);
		do {
			xas_lock(&xas);
			CHECK(xas_store(&xas, xa_mk_value(i)) == NULL);
			xas_unlock(&xas);
		} while (xas_nomem(&xas, GFP_KERNEL));
		CHECK(!xas_error(&xas) && xas_valid(&xas));
	}
	xas_set_mark(&xas, XA_MARK_0);
	CHECK(xas_get_mark(&xas, XA_MARK_0) && xas_load(&xas) == xa_mk_value(2));
	xas_set(&xas, 0);
	xas_lock_irq(&xas);
	xas_for_each(&xas, entry, 204) {
		CHECK(!xas_retry(&xas, entry) && !preemptible());
		sum += xas.xa_index;
		xas_pause(&xas);
	}
	xas_unlock_irq(&xas);
	CHECK(sum == 5 + 105 && xas.xa_index == 205 && xas_find(&xas, ULONG_MAX) == xa_mk_value(2) && !xas_find(&xas, ULONG_MAX));
	CHECK(xas_invalid(&xas) && !xas_find(&xas, ULONG_MAX));
	xas_set(&xas, 4);
	CHECK(!xas_next(&xas) && xas_next(&xas) == xa_mk_value(0) && !xas_next(&xas) && xas_prev(&xas) == xa_mk_value(0));
	CHECK_EQUAL(xas.xa_index, 5);
	CHECK(xas_store(&xas, NULL) == xa_mk_value(0) && !xa_load(&xa, 5));
	xas_set(&xas, 0);
	sum = 0;
	xas_for_each_marked(&xas, entry, ULONG_MAX, XA_MARK_0)
		sum += xas.xa_index;
	CHECK_EQUAL(sum, 205);
	CHECK(!xa_err(xa_store(&xa, ULONG_MAX, &xa, GFP_KERNEL)));
	xas_set(&xas, ULONG_MAX);
	CHECK(xas_find(&xas, ULONG_MAX) == &xa && !xas_find(&xas, ULONG_MAX));
	xas_set(&xas, ULONG_MAX);
	CHECK(xas_load(&xas) == &xa && !xas_next(&xas) && xas.xa_index == 0 && xas_prev(&xas) == &xa);
	xas_set_err(&xas, -EINVAL);
	CHECK(!xas_store(&xas, NULL) && !xas_load(&xas) && xas_error(&xas) == -EINVAL && !xas_nomem(&xas, GFP_KERNEL));
	CHECK(xa_load(&xa, ULONG_MAX) == &xa);
	xa_destroy(&xa);
}

/* Places are filled until the heap asks for a page and there is none; slub is content with fewer pages then. */
static void places_without_memory(void)
{
	DEFINE_XARRAY(xa);
	XA_STATE(xas, &xa, 0);
	struct sy_pages *pages = sy_kmem_heap()->pages;

	sy_pages_fail_after(pages, 1);
	for (unsigned long i = 0; i < KEYS && !xas_error(&xas); i++) {
		xas_set(&xas, i << 6);
		xas_store(&xas, &xa);
	}
	CHECK(xas_error(&xas) == -ENOMEM || !xas_error(&xas));
	xas_set_err(&xas, -ENOMEM);
	sy_pages_fail_after(pages, 0);
	CHECK(xas_nomem(&xas, GFP_KERNEL) && !xas_error(&xas));
	xas_store(&xas, &xa);
	CHECK(!xas_error(&xas) && xas_load(&xas) == &xa);
	xa_destroy(&xa);
}

static void slots_of_radix_trees(void)
{
	RADIX_TREE(root, GFP_KERNEL);
	struct radix_tree_iter iter;
	unsigned long sum = 0;
	void **slot;

	radix_tree_for_each_slot(slot, &root, &iter, 0)
		CHECK(false);
	for (unsigned long i = 1; i < 200; i++)
		CHECK_EQUAL(radix_tree_insert(&root, i * i, &root), 0);
	CHECK_EQUAL(radix_tree_insert(&root, ULONG_MAX, &root), 0);
	radix_tree_for_each_slot(slot, &root, &iter, 5) {
		CHECK(radix_tree_deref_slot(slot) == &root && !radix_tree_deref_retry(*slot));
		if (iter.index == 9)
			radix_tree_replace_slot(&root, slot, &iter);
		if (iter.index == 16)
			radix_tree_iter_delete(&root, &iter, slot);
		if (iter.index == 25)
			radix_tree_iter_tag_set(&root, &iter, 1);
		sum++;
	}
	CHECK(sum == 198 && radix_tree_lookup(&root, 9) == &iter && !radix_tree_lookup(&root, 16));
	radix_tree_for_each_tagged(slot, &root, &iter, 0, 1)
		CHECK_EQUAL(iter.index, 25);
	radix_tree_for_each_slot(slot, &root, &iter, 0)
		radix_tree_iter_delete(&root, &iter, slot);
	CHECK(radix_tree_empty(&root));
}

static void radix_trees(void)
{
	RADIX_TREE(root, GFP_KERNEL);
	void *found[4];

	CHECK_EQUAL(radix_tree_insert(&root, 9, found), 0);
	CHECK_EQUAL(radix_tree_insert(&root, 9, found), -EEXIST);
	CHECK_EQUAL(radix_tree_insert(&root, 900, &root), 0);
	radix_tree_tag_set(&root, 900, 2);
	CHECK(radix_tree_tagged(&root, 2) && !radix_tree_tag_get(&root, 9, 2));
	CHECK_EQUAL(radix_tree_gang_lookup(&root, found, 0, 4), 2);
	CHECK_EQUAL(radix_tree_gang_lookup_tag(&root, found, 0, 4, 2), 1);
	CHECK(found[0] == &root && radix_tree_delete(&root, 900) == &root && !radix_tree_tagged(&root, 2));
	CHECK(radix_tree_lookup(&root, 900) == NULL && radix_tree_delete(&root, 9) == found && radix_tree_empty(&root));
}

/* ---- Hash tables, rings, bits -------------------------------------------------------------------------------------- */

struct word {
	struct hlist_node node;
	struct llist_node link;
	struct list_head order;
	u32 key, number;
};

static void tables(void)
{
	static DEFINE_HASHTABLE(table, 6);
	struct word *word;
	struct hlist_node *spare;
	unsigned count = 0, bucket;

	CHECK(hash_empty(table));
	for (u32 i = 0; i < KEYS; i++) {
		word = kmalloc(sizeof(*word), GFP_KERNEL);
		word->key = jhash_1word(i % 100, 5);
		hash_add(table, &word->node, word->key);
	}
	hash_for_each_possible(table, word, node, jhash_1word(42, 5))
		count += word->key == jhash_1word(42, 5);
	CHECK_EQUAL(count, KEYS / 100);
	hash_for_each_safe(table, bucket, spare, word, node) {
		hash_del(&word->node);
		kfree(word);
		count++;
	}
	CHECK_EQUAL(count, KEYS + KEYS / 100);
	CHECK(hash_empty(table));
	CHECK(jhash("slab", 4, 0) == jhash("slab", 4, 0) && jhash("slab", 4, 0) != jhash("slob", 4, 0));
}

static void rings(void)
{
	DEFINE_KFIFO(numbers, u16, 8);
	DECLARE_KFIFO_PTR(words, u32);
	struct kfifo bytes;
	u16 in = 0, out = 0, got;
	u32 some[5] = { 1, 2, 3, 4, 5 };
	char text[8] = "";

	for (unsigned step = 0; step < STEPS; step++) {
		if (below(2))
			in = (u16)(in + kfifo_put(&numbers, in));
		else if (kfifo_get(&numbers, &got))
			CHECK_EQUAL(got, out++);
		CHECK_EQUAL(kfifo_len(&numbers), (u16)(in - out));
	}
	CHECK_EQUAL(kfifo_alloc(&words, 6, GFP_KERNEL), 0);
	CHECK_EQUAL(kfifo_size(&words), 8);
	CHECK_EQUAL(kfifo_in(&words, some, 5), 5);
	CHECK_EQUAL(kfifo_in(&words, some, 5), 3);
	CHECK(kfifo_is_full(&words));
	CHECK_EQUAL(kfifo_out(&words, some, 5), 5);
	CHECK(kfifo_peek(&words, some) && some[0] == 1);
	kfifo_free(&words);
	CHECK_EQUAL(kfifo_alloc(&bytes, 4, GFP_KERNEL), 0);
	CHECK_EQUAL(kfifo_in(&bytes, "slab", 4), 4);
	CHECK_EQUAL(kfifo_out(&bytes, text, sizeof(text)), 4);
	CHECK_TEXT(text, "slab");
	kfifo_free(&bytes);
}

#define BITS 150

static void bits(void)
{
	unsigned long *map = bitmap_zalloc(BITS, GFP_KERNEL), bit, count = 0;
	DECLARE_BITMAP(other, BITS);
	bool model[BITS] = { false };

	CHECK(bitmap_empty(map, BITS));
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned at = below(BITS), length = below(BITS - at);
		bool set = below(2);

		if (set)
			bitmap_set(map, at, length);
		else
			bitmap_clear(map, at, length);
		memset(model + at, set, length);
		for (bit = at; bit < BITS && !model[bit]; bit++)
			;
		CHECK_EQUAL(find_next_bit(map, BITS, at), bit);
		for (bit = at; bit < BITS && model[bit]; bit++)
			;
		CHECK_EQUAL(find_next_zero_bit(map, BITS, at), bit);
	}
	for_each_set_bit(bit, map, BITS)
		count += model[bit];
	CHECK_EQUAL(bitmap_weight(map, BITS), count);
	bitmap_complement(other, map, BITS);
	CHECK(!bitmap_intersects(map, other, BITS) && !bitmap_equal(map, other, BITS));
	bitmap_or(other, other, map, BITS);
	CHECK(bitmap_full(other, BITS) && bitmap_subset(map, other, BITS));
	bitmap_zero(other, BITS);
	bitmap_set(other, 0, 5);
	CHECK_EQUAL(bitmap_find_next_zero_area(other, BITS, 0, 4, 3), 8);
	CHECK_EQUAL(bitmap_find_free_region(other, BITS, 3), 8);
	bitmap_free(map);
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

static int compare_numbers(const void *one, const void *other)
{
	const u32 *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

static int compare_words(void *context, const struct list_head *one, const struct list_head *other)
{
	++*(unsigned *)context;
	return (int)list_entry(one, struct word, order)->key - (int)list_entry(other, struct word, order)->key;
}

static void in_order(void)
{
	static u32 numbers[KEYS];
	static struct word words[KEYS];
	struct word *word, *last = NULL;
	LIST_HEAD(list);
	LLIST_HEAD(queue);
	unsigned compared = 0, count = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		numbers[i] = below(400);
		words[i].key = below(50);
		words[i].number = i;
		list_add_tail(&words[i].order, &list);
		CHECK_EQUAL(llist_add(&words[i].link, &queue), i == 0);
	}
	sort(numbers, KEYS, sizeof(numbers[0]), compare_numbers, NULL);
	for (unsigned i = 1; i < KEYS; i++)
		CHECK(numbers[i - 1] <= numbers[i]);
	list_sort(&compared, &list, compare_words);
	list_for_each_entry(word, &list, order) {
		CHECK(!last || last->key < word->key || (last->key == word->key && last->number < word->number));
		last = word;
		count++;
	}
	CHECK(count == KEYS && compared < KEYS * 11);
	CHECK(llist_del_first(&queue) == &words[KEYS - 1].link);
	llist_for_each_entry(word, llist_reverse_order(llist_del_all(&queue)), link)
		CHECK_EQUAL(word->number, KEYS - count--);
	CHECK(count == 1 && llist_empty(&queue));
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void numbers_from_text(void)
{
	unsigned long large = 0;
	bool so = false;
	int number = 0;
	s8 small = 0;
	u8 byte = 0;

	CHECK_EQUAL(kstrtoint("-42\n", 10, &number), 0);
	CHECK_EQUAL(number, -42);
	CHECK_EQUAL(kstrtoint("42 ", 10, &number), -EINVAL);
	CHECK_EQUAL(kstrtoint("", 10, &number), -EINVAL);
	CHECK_EQUAL(kstrtoint("2147483648", 10, &number), -ERANGE);
	CHECK_EQUAL(kstrtoint("-2147483648", 10, &number), 0);
	CHECK_EQUAL(kstrtoul("0x10", 0, &large), 0);
	CHECK_EQUAL(large, 16);
	CHECK_EQUAL(kstrtoul("-1", 0, &large), -EINVAL);
	CHECK_EQUAL(kstrtou8("256", 10, &byte), -ERANGE);
	CHECK_EQUAL(kstrtos8("-128", 10, &small), 0);
	CHECK_EQUAL(kstrtos8("-129", 10, &small), -ERANGE);
	CHECK(kstrtobool("on", &so) == 0 && so && kstrtobool("n", &so) == 0 && !so && kstrtobool("x", &so) == -EINVAL);
}

static void texts(void)
{
	static const char *const modes[] = { "slab", "slub", "slob", NULL };
	char room[6], line[] = "  some words  ", *rest = line, **words;
	struct seq_file file = { .buf = NULL };
	int count;

	CHECK_EQUAL(strscpy(room, "slab", sizeof(room)), 4);
	CHECK_EQUAL(strscpy(room, "slabyard"), -E2BIG);
	CHECK_TEXT(room, "slaby");
	CHECK_TEXT(strim(line), "some words");
	rest = strim(line);
	CHECK_TEXT(strsep(&rest, " "), "some");
	CHECK_TEXT(rest, "words");
	CHECK(sysfs_streq("slub\n", "slub") && !sysfs_streq("slub", "slubs"));
	CHECK_EQUAL(match_string(modes, 3, "slob"), 2);
	CHECK_EQUAL(sysfs_match_string(modes, "slub\n"), 1);
	CHECK_EQUAL(match_string(modes, 3, "slqb"), -EINVAL);
	CHECK(memchr_inv("aaab", 'a', 3) == NULL && *(const char *)memchr_inv("aaab", 'a', 4) == 'b');
	words = argv_split(GFP_KERNEL, " cc -o  x ", &count);
	CHECK(words && count == 3 && !words[3]);
	CHECK_TEXT(words[1], "-o");
	argv_free(words);
	for (int i = 0; i < 100; i++)
		seq_printf(&file, "%d,", i);
	seq_puts(&file, "end");
	CHECK(file.count == 293 && !strncmp(file.buf, "0,1,2", 5) && !strcmp(file.buf + 287, "99,end"));
	kfree(file.buf);
}

int main(void)
{
	prandom_seed_state(&state, 1966);
	grow_and_fell(false);
	grow_and_fell(true);
	found_by_key();
	arrays();
	ended_arrays();
	ids();
	places_in_arrays();
	places_without_memory();
	radix_trees();
	slots_of_radix_trees();
	tables();
	rings();
	bits();
	in_order();
	numbers_from_text();
	texts();
	rcu_barrier();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
