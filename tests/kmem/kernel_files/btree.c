/* The kernel's lib/btree.c, with its nodes of mempools and a cache: numbers in, looked up, in order, out again. */
#include <linux/btree.h>
#include <linux/module.h>

#define KEYS 20000

static u32 key_of(u32 i)
{
	return i * 7919 % KEYS + 1;
}

int main(void)
{
	struct btree_head32 tree;
	u32 key, count = 0;
	void *value;

	if (init_module() || btree_init32(&tree))
		return 1;
	for (u32 i = 0; i < KEYS; i++)
		if (btree_insert32(&tree, key_of(i), (void *)(unsigned long)key_of(i), GFP_KERNEL))
			return 2;
	for (u32 i = 0; i < KEYS; i += 2)
		if (btree_remove32(&tree, key_of(i)) != (void *)(unsigned long)key_of(i))
			return 3;
	btree_for_each_safe32(&tree, key, value) {
		if (btree_lookup32(&tree, key) != (void *)(unsigned long)key || value != (void *)(unsigned long)key)
			return 4;
		count++;
	}
	btree_grim_visitor32(&tree, 0, NULL);
	btree_destroy32(&tree);
	cleanup_module();
	return count != KEYS / 2;
}
