/*
 * A module as a kernel has them: a table of names with attributes, hashed, in caches of its own. Nothing in it knows that it is
 * compiled into a program.
 */
#include <linux/gfp.h>
#include <linux/slab.h>

#include "names.h"

#define BUCKETS_AT_FIRST 8
#define ATTRIBUTES_AT_ONCE 4

struct name {
	struct list_head chain;  /* in a bucket; empty in an object that is free, see name_init_once */
	struct attribute **attributes;
	size_t attribute_count, attribute_room;
	u32 hash;
	char *text;
};

struct attribute {
	u64 value;
	char key[24];
};

struct names {
	struct list_head *buckets;
	size_t bucket_count, count;
	u8 *journal;
	size_t journal_bytes;
};

static struct kmem_cache *name_cache;
static struct kmem_cache *attribute_cache;

static void name_init_once(void *object)
{
	struct name *name = object;

	INIT_LIST_HEAD(&name->chain);
}

int names_init(void)
{
	name_cache = kmem_cache_create("name", sizeof(struct name), 0, SLAB_RECLAIM_ACCOUNT | SLAB_MEM_SPREAD | SLAB_ACCOUNT,
	                               name_init_once);
	if (!name_cache)
		return -ENOMEM;
	attribute_cache = KMEM_CACHE(attribute, SLAB_HWCACHE_ALIGN | SLAB_PANIC);
	return 0;
}

void names_exit(void)
{
	kmem_cache_destroy(attribute_cache);
	kmem_cache_destroy(name_cache);
}

static u32 hash_of(const char *text)
{
	u32 hash = 2166136261u;

	for (; *text; text++)
		hash = (hash ^ (u8)*text) * 16777619u;
	return hash;
}

static struct list_head *make_buckets(size_t count)
{
	struct list_head *buckets = kvmalloc_array(count, sizeof(*buckets), GFP_KERNEL);

	for (size_t i = 0; buckets && i < count; i++)
		INIT_LIST_HEAD(&buckets[i]);
	return buckets;
}

struct names *names_new(void)
{
	struct names *names = kzalloc(sizeof(*names), GFP_KERNEL);

	if (!names)
		return NULL;
	names->bucket_count = BUCKETS_AT_FIRST;
	names->buckets = make_buckets(names->bucket_count);
	if (!names->buckets) {
		kfree(names);
		return NULL;
	}
	return names;
}

/* Doubles the buckets. If there is no memory for them, the old ones stay in use. */
static void rehash(struct names *names)
{
	size_t count = names->bucket_count * 2;
	struct list_head *buckets = make_buckets(count);

	if (!buckets)
		return;
	for (size_t i = 0; i < names->bucket_count; i++) {
		while (!list_empty(&names->buckets[i])) {
			struct name *name = list_first_entry(&names->buckets[i], struct name, chain);

			list_del_init(&name->chain);
			list_add_tail(&name->chain, &buckets[name->hash % count]);
		}
	}
	kvfree(names->buckets);
	names->buckets = buckets;
	names->bucket_count = count;
}

static struct name *lookup(const struct names *names, const char *text)
{
	u32 hash = hash_of(text);
	struct list_head *bucket = &names->buckets[hash % names->bucket_count], *at;

	list_for_each(at, bucket) {
		struct name *name = container_of(at, struct name, chain);

		if (name->hash == hash && !strcmp(name->text, text))
			return name;
	}
	return NULL;
}

int names_add(struct names *names, const char *text)
{
	struct name *name;

	if (lookup(names, text))
		return -EEXIST;
	name = kmem_cache_alloc(name_cache, GFP_KERNEL);
	if (!name)
		return -ENOMEM;
	if (!list_empty(&name->chain)) /* not in its constructed state */
		return -EINVAL;
	name->text = kstrdup(text, GFP_KERNEL);
	if (!name->text)
		goto no_text;
	name->attributes = NULL;
	name->attribute_count = 0;
	name->attribute_room = 0;
	name->hash = hash_of(text);
	list_add_tail(&name->chain, &names->buckets[name->hash % names->bucket_count]);
	if (++names->count > names->bucket_count * 2)
		rehash(names);
	return 0;

no_text:
	kmem_cache_free(name_cache, name);
	return -ENOMEM;
}

int names_set(struct names *names, const char *text, const char *key, u64 value)
{
	struct name *name = lookup(names, text);
	struct attribute *attribute;

	if (!name)
		return -ENOENT;
	if (name->attribute_count == name->attribute_room) {
		size_t room = name->attribute_room + ATTRIBUTES_AT_ONCE;
		struct attribute **more = krealloc_array(name->attributes, room, sizeof(*more), GFP_KERNEL);

		if (!more)
			return -ENOMEM;
		name->attributes = more;
		name->attribute_room = room;
	}
	attribute = kmem_cache_zalloc(attribute_cache, GFP_NOWAIT);
	if (!attribute)
		return -ENOMEM;
	attribute->value = value;
	strncpy(attribute->key, key, sizeof(attribute->key) - 1);
	name->attributes[name->attribute_count++] = attribute;
	return 0;
}

/* 0: none of that key. */
u64 names_get(const struct names *names, const char *text, const char *key)
{
	const struct name *name = lookup(names, text);

	for (size_t i = 0; name && i < name->attribute_count; i++)
		if (!strcmp(name->attributes[i]->key, key))
			return name->attributes[i]->value;
	return 0;
}

int names_journal(struct names *names, size_t bytes)
{
	u8 *journal = kvrealloc(names->journal, names->journal_bytes, bytes, GFP_KERNEL | __GFP_ZERO);

	if (!journal)
		return -ENOMEM;
	memset(journal + names->journal_bytes, 0x6a, bytes - names->journal_bytes);
	names->journal = journal;
	names->journal_bytes = bytes;
	return 0;
}

bool names_journal_whole(const struct names *names)
{
	for (size_t i = 0; i < names->journal_bytes; i++)
		if (names->journal[i] != 0x6a)
			return false;
	return true;
}

char *names_describe(const struct names *names)
{
	return kasprintf(GFP_KERNEL, "%zu names in %zu buckets", names->count, names->bucket_count);
}

static void name_free(struct name *name)
{
	list_del_init(&name->chain);
	kmem_cache_free_bulk(attribute_cache, name->attribute_count, (void **)name->attributes);
	kfree(name->attributes);
	kfree_sensitive(name->text);
	kmem_cache_free(name_cache, name);
}

int names_remove(struct names *names, const char *text)
{
	struct name *name = lookup(names, text);

	if (!name)
		return -ENOENT;
	name_free(name);
	names->count--;
	return 0;
}

void names_free(struct names *names)
{
	for (size_t i = 0; i < names->bucket_count; i++)
		while (!list_empty(&names->buckets[i]))
			name_free(list_first_entry(&names->buckets[i], struct name, chain));
	kvfree(names->journal);
	kvfree(names->buckets);
	kfree(names);
}
