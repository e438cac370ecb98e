/* Bugs with the kernel's names for caches: kmem_cache_alloc, kmalloc and their kind. The heap is as SLABYARD says. */
#include "planted.h"

#include <slabyard/kmem.h>

static NO_INLINE unsigned char *kmalloc_allocate_it(size_t size)
{
	unsigned char *object = (unsigned char *)kmalloc(size, GFP_KERNEL);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE void kfree_free_it(const void *object)
{
	kfree(object);
	NOT_LAST();
}

static NO_INLINE unsigned char *kmem_allocate_it(struct kmem_cache *cache)
{
	unsigned char *object = (unsigned char *)kmem_cache_alloc(cache, GFP_KERNEL);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE void kmem_free_it(struct kmem_cache *cache, void *object)
{
	kmem_cache_free(cache, object);
	NOT_LAST();
}

struct inode {
	unsigned long number;
	char name[60];
};

static NO_INLINE struct kmem_cache *inodes(void)
{
	return KMEM_CACHE(inode, SLAB_PANIC);
}

/* ---- Overflows -------------------------------------------------------------------------------------------------- */

static void overflow(unsigned char *object, size_t size, size_t count)
{
	expect(object + size);
	damage_it(object + size, count);
	kfree_free_it(object);
}

/* 1 byte past 64 of kmalloc. */
BUG(kmalloc_by_1, PAST_END, "kmalloc_allocate_it")
{
	overflow(kmalloc_allocate_it(64), 64, 1);
}

/* 2 bytes past 100 of kmalloc, of which Linux has 128. */
BUG(kmalloc_by_2, PAST_END, "kmalloc_allocate_it")
{
	overflow(kmalloc_allocate_it(100), 100, 2);
}

/* 1 byte past 50,000 of kmalloc. */
BUG(kmalloc_large_by_1, PAST_END, "kmalloc_allocate_it")
{
	overflow(kmalloc_allocate_it(50000), 50000, 1);
}

static NO_INLINE char *kstrdup_allocate_it(const char *string)
{
	char *copy = kstrdup(string, GFP_KERNEL);

	OPAQUE(copy);
	need(copy != NULL, "no memory");
	return copy;
}

/* A string of kstrdup is made longer. */
BUG(kstrdup_by_1, PAST_END, "kstrdup_allocate_it")
{
	char *copy = kstrdup_allocate_it("eth0");

	expect(copy + 5);
	damage_it((unsigned char *)copy + 4, 2);
	kfree_free_it(copy);
}

/* 8 bytes past an object of a cache. */
BUG(cache_by_8, PAST_END, "kmem_allocate_it")
{
	struct kmem_cache *cache = inodes();
	struct inode *inode = (struct inode *)kmem_allocate_it(cache);

	expect(inode + 1);
	damage_it((unsigned char *)(inode + 1), 8);
	kmem_free_it(cache, inode);
}

/* ---- Writes after the free -------------------------------------------------------------------------------------- */

/* An object of kmalloc is written after kfree. */
BUG(kmalloc_written_after_kfree, AFTER_FREE, "kmalloc_allocate_it kfree_free_it")
{
	unsigned char *object = kmalloc_allocate_it(192);

	kfree_free_it(object);
	expect(object + 64);
	damage_it(object + 64, 8);
	for (unsigned i = 0; i < 300; i++)
		kfree_free_it(kmalloc_allocate_it(192));
}

/* A cache's object is written after kmem_cache_free. */
BUG(cache_written_after_free, AFTER_FREE, "kmem_allocate_it kmem_free_it")
{
	struct kmem_cache *cache = inodes();
	struct inode *inode = (struct inode *)kmem_allocate_it(cache);

	kmem_free_it(cache, inode);
	expect(inode->name);
	damage_it((unsigned char *)inode->name, 4);
	for (unsigned i = 0; i < 300; i++)
		kmem_free_it(cache, kmem_allocate_it(cache));
}

/* ---- Frees ------------------------------------------------------------------------------------------------------ */

/* kfree twice. */
BUG(kfree_twice, DOUBLE_FREE, "kmalloc_allocate_it kfree_free_it")
{
	unsigned char *object = kmalloc_allocate_it(32);

	kfree_free_it(object);
	expect(object);
	kfree_free_it(object);
}

/* kmem_cache_free twice, with another object between. */
BUG(cache_free_twice, DOUBLE_FREE, "kmem_allocate_it kmem_free_it")
{
	struct kmem_cache *cache = inodes();
	unsigned char *object = kmem_allocate_it(cache), *other = kmem_allocate_it(cache);

	kmem_free_it(cache, object);
	kmem_free_it(cache, other);
	expect(object);
	kmem_free_it(cache, object);
}

static NO_INLINE void bulk_free_it(struct kmem_cache *cache, size_t count, void **objects)
{
	kmem_cache_free_bulk(cache, count, objects);
	NOT_LAST();
}

/* An array of kmem_cache_free_bulk has an object twice. */
BUG(twice_in_an_array, DOUBLE_FREE, "kmem_allocate_it bulk_free_it")
{
	struct kmem_cache *cache = inodes();
	void *objects[3];

	objects[0] = kmem_allocate_it(cache);
	objects[1] = kmem_allocate_it(cache);
	objects[2] = objects[0];
	expect(objects[0]);
	bulk_free_it(cache, 3, objects);
}

static NO_INLINE void *krealloc_free_it(void *object, size_t size)
{
	void *moved = krealloc(object, size, GFP_KERNEL);

	OPAQUE(moved);
	need(moved != NULL, "no memory");
	return moved;
}

/* The old pointer, after krealloc has moved the object. */
BUG(the_old_one_of_krealloc, DOUBLE_FREE, "kmalloc_allocate_it krealloc_free_it")
{
	unsigned char *object = kmalloc_allocate_it(64);
	void *moved = krealloc_free_it(object, 4000);

	OPAQUE(object);
	need(moved != object, "krealloc did not move the object");
	expect(object);
	kfree_free_it(object);
}

/* A member of an object of kmalloc is freed. */
BUG(kfree_within, INTERIOR, "kmalloc_allocate_it kfree_free_it")
{
	unsigned char *object = kmalloc_allocate_it(256);

	expect(object + 64);
	kfree_free_it(object + 64);
}

/* kfree of an array on the stack. */
BUG(kfree_of_the_stack, FOREIGN, "kfree_free_it")
{
	long array[16] = {0};

	kfree_free_it(kmalloc_allocate_it(128));
	expect(array);
	kfree_free_it(array);
}

/* kmem_cache_free of static data. */
BUG(cache_free_of_static_data, FOREIGN, "kmem_free_it")
{
	static struct inode root;
	struct kmem_cache *cache = inodes();

	kmem_free_it(cache, kmem_allocate_it(cache));
	expect(&root);
	kmem_free_it(cache, &root);
}

/* kfree of what malloc gave. */
BUG(kfree_of_malloc, FOREIGN, "kfree_free_it")
{
	unsigned char *object = allocate_it(128);

	kfree_free_it(kmalloc_allocate_it(128));
	expect(object);
	kfree_free_it(object);
}

/* kmem_cache_free to another cache of the same size. */
BUG(to_another_cache, WRONG_CACHE, "kmem_allocate_it kmem_free_it")
{
	struct kmem_cache *cache = inodes(), *another = kmem_cache_create("dentry", sizeof(struct inode), 0, 0, NULL);
	unsigned char *object = kmem_allocate_it(cache);

	kmem_free_it(another, kmem_allocate_it(another));
	expect(object);
	kmem_free_it(another, object);
}

/* An object of kmalloc is freed to a cache. */
BUG(kmalloc_to_a_cache, WRONG_CACHE, "kmalloc_allocate_it kmem_free_it")
{
	struct kmem_cache *cache = kmem_cache_create("sixty-four", 64, 0, 0, NULL);
	unsigned char *object = kmalloc_allocate_it(64);

	kmem_free_it(cache, kmem_allocate_it(cache));
	expect(object);
	kmem_free_it(cache, object);
}

/* ---- State and leaks -------------------------------------------------------------------------------------------- */

struct dentry {
	int count;
	struct dentry *parent;
	char name[40];
};

static void construct_dentry(void *object)
{
	struct dentry *dentry = (struct dentry *)object;

	dentry->count = 0;
	dentry->parent = dentry;
}

/* An object that a constructor made is freed with a count of 1. */
BUG(count_not_back, STATE, "kmem_allocate_it kmem_free_it")
{
	struct kmem_cache *cache = kmem_cache_create("dentry", sizeof(struct dentry), 0, 0, construct_dentry);
	struct dentry *dentry = (struct dentry *)kmem_allocate_it(cache);

	dentry->count++;
	expect_within(dentry, sizeof(*dentry));
	kmem_free_it(cache, dentry);
	kmem_free_it(cache, kmem_allocate_it(cache));
}

/* An object of kmalloc is lost. */
BUG(lost_kmalloc, LEAK, "kmalloc_allocate_it")
{
	unsigned char *object = kmalloc_allocate_it(444);

	expect_leak(object, 444);
}

/* An object of a cache is lost. */
BUG(lost_object, LEAK, "kmem_allocate_it")
{
	unsigned char *object = kmem_allocate_it(inodes());

	expect_leak(object, sizeof(struct inode));
}

/* ---- No bug ----------------------------------------------------------------------------------------------------- */

/* kmalloc, kzalloc, krealloc, kcalloc, kvmalloc and strings, of many sizes. */
SILENT(memory_used_well)
{
	for (size_t size = 1; size < 300000; size += 1 + size / 2) {
		unsigned char *object = kmalloc_allocate_it(size), *zero = (unsigned char *)kvzalloc(size, GFP_KERNEL);

		memset(object, 'k', ksize(object));
		object = (unsigned char *)krealloc(object, size * 2, GFP_KERNEL);
		need(object && object[size - 1] == 'k', "krealloc lost what was there");
		memset(object, 'k', size * 2);
		need(zero && zero[size - 1] == 0, "kvzalloc gave what is not zero");
		memset(zero, 'z', size);
		kfree_sensitive(object);
		kvfree(zero);
	}
	kfree(kmalloc(0, GFP_KERNEL));
	kfree(NULL);
	kfree(kasprintf(GFP_KERNEL, "%d of %s", 12, "many"));
	kvfree(kvmalloc(8 * MIB, GFP_KERNEL));
}

/* A cache's object by kfree, where the policy allows it. */
SILENT(object_by_kfree)
{
	struct kmem_cache *cache = inodes();
	struct sy_policy_description policy;
	unsigned char *object = kmem_allocate_it(cache);

	sy_policy_describe(sy_heap_policy(sy_kmem_heap()), &policy);
	if (strstr("slob bsd44 svr4 sunos4", policy.name))
		kmem_free_it(cache, object);
	else
		kfree_free_it(object);
}

/* Constructed objects are restored, but for a name that nobody constructs. */
SILENT(constructed_and_restored)
{
	struct kmem_cache *cache = kmem_cache_create("dentry", sizeof(struct dentry), 0, 0, construct_dentry);
	struct dentry *dentries[100];

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 100; i++) {
			dentries[i] = (struct dentry *)kmem_allocate_it(cache);
			need(dentries[i]->count == 0 && dentries[i]->parent == dentries[i], "an object is not constructed");
			dentries[i]->count++;
			dentries[i]->parent = dentries[0];
			strcpy(dentries[i]->name, "a name");
		}
		for (unsigned i = 0; i < 100; i++) {
			dentries[i]->count--;
			dentries[i]->parent = dentries[i];
			kmem_free_it(cache, dentries[i]);
		}
	}
	kmem_cache_destroy(cache);
}

/* A bulk of objects and its free. */
SILENT(bulk)
{
	struct kmem_cache *cache = inodes();
	void *objects[100];

	need(kmem_cache_alloc_bulk(cache, GFP_KERNEL, 100, objects) == 100, "no memory");
	for (unsigned i = 0; i < 100; i++)
		memset(objects[i], 'b', sizeof(struct inode));
	kmem_cache_free_bulk(cache, 100, objects);
	kmem_cache_destroy(cache);
}
