/* The kernel's lib/assoc_array.c: objects by number, whose tree is edited aside and freed when readers have done. */
#include <linux/assoc_array.h>
#include <linux/slab.h>

#define OBJECTS 3000

struct object {
	unsigned long key;
};

static unsigned alive;

/* The word that has the bit of a level. */
static unsigned long key_chunk(const void *key, int level)
{
	return level < BITS_PER_LONG ? *(const unsigned long *)key : 0;
}

static unsigned long object_chunk(const void *object, int level)
{
	return key_chunk(&((const struct object *)object)->key, level);
}

static bool same(const void *object, const void *key)
{
	return ((const struct object *)object)->key == *(const unsigned long *)key;
}

static int first_difference(const void *object, const void *key)
{
	unsigned long other = ((const struct object *)object)->key ^ *(const unsigned long *)key;

	return other ? (int)__ffs(other) : -1;
}

static void let_go(void *object)
{
	kfree(object);
	alive--;
}

static const struct assoc_array_ops ops = { key_chunk, object_chunk, same, first_difference, let_go };

int main(void)
{
	struct assoc_array array;

	assoc_array_init(&array);
	for (unsigned long i = 0; i < OBJECTS; i++) {
		struct object *object = kmalloc(sizeof(*object), GFP_KERNEL);
		struct assoc_array_edit *edit;

		object->key = i * 7919;
		edit = assoc_array_insert(&array, &ops, &object->key, object);
		if (IS_ERR_OR_NULL(edit))
			return 1;
		assoc_array_apply_edit(edit);
		alive++;
	}
	for (unsigned long i = 0; i < OBJECTS; i += 3) {
		unsigned long key = i * 7919;
		struct assoc_array_edit *edit = assoc_array_delete(&array, &ops, &key);

		if (IS_ERR_OR_NULL(edit))
			return 2;
		assoc_array_apply_edit(edit);
	}
	for (unsigned long i = 0; i < OBJECTS; i++) {
		unsigned long key = i * 7919;
		struct object *object = assoc_array_find(&array, &ops, &key);

		if (i % 3 ? !object || object->key != key : object != NULL)
			return 3;
	}
	rcu_barrier();
	assoc_array_destroy(&array, &ops);
	rcu_barrier();
	return alive != 0;
}
