/* <linux/hashtable.h> for kernel code that is compiled into a program: tables of a power of two of lists. */
#ifndef SLABYARD_KERNEL_LINUX_HASHTABLE_H
#define SLABYARD_KERNEL_LINUX_HASHTABLE_H

#pragma GCC system_header

#include "hash.h"
#include "kernel.h"
#include "rculist.h"

#define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]
#define DEFINE_HASHTABLE(name, bits) DECLARE_HASHTABLE(name, bits) = { { NULL } }
#define DEFINE_READ_MOSTLY_HASHTABLE(name, bits) DEFINE_HASHTABLE(name, bits)
#define HASH_SIZE(table) ARRAY_SIZE(table)
#define HASH_BITS(table) ((unsigned)ilog2(HASH_SIZE(table)))
#define hash_min(value, bits) (sizeof(value) <= 4 ? hash_32((u32)(value), bits) : hash_long((unsigned long)(value), bits))
#define hash_init(table) sy__hash_init(table, HASH_SIZE(table))
#define hash_empty(table) sy__hash_empty(table, HASH_SIZE(table))
#define hash_add(table, node, key) hlist_add_head(node, &(table)[hash_min(key, HASH_BITS(table))])
#define hash_add_rcu(table, node, key) hlist_add_head_rcu(node, &(table)[hash_min(key, HASH_BITS(table))])

static inline void sy__hash_init(struct hlist_head *table, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		INIT_HLIST_HEAD(&table[i]);
}

static inline bool sy__hash_empty(const struct hlist_head *table, size_t size)
{
	size_t i = 0;

	while (i < size && hlist_empty(&table[i]))
		i++;
	return i == size;
}

static inline bool hash_hashed(struct hlist_node *node)
{
	return !hlist_unhashed(node);
}

static inline void hash_del(struct hlist_node *node)
{
	hlist_del_init(node);
}

static inline void hash_del_rcu(struct hlist_node *node)
{
	hlist_del_init_rcu(node);
}

/* All entries; those whose key has the same hash. */
#define hash_for_each(table, bucket, at, member) \
	for ((bucket) = 0, (at) = NULL; !(at) && (size_t)(bucket) < HASH_SIZE(table); (bucket)++) \
		hlist_for_each_entry(at, &(table)[bucket], member)
#define hash_for_each_rcu(table, bucket, at, member) \
	for ((bucket) = 0, (at) = NULL; !(at) && (size_t)(bucket) < HASH_SIZE(table); (bucket)++) \
		hlist_for_each_entry_rcu(at, &(table)[bucket], member)
#define hash_for_each_safe(table, bucket, spare, at, member) \
	for ((bucket) = 0, (at) = NULL; !(at) && (size_t)(bucket) < HASH_SIZE(table); (bucket)++) \
		hlist_for_each_entry_safe(at, spare, &(table)[bucket], member)
#define hash_for_each_possible(table, at, member, key) \
	hlist_for_each_entry(at, &(table)[hash_min(key, HASH_BITS(table))], member)
#define hash_for_each_possible_rcu(table, at, member, key, ...) \
	hlist_for_each_entry_rcu(at, &(table)[hash_min(key, HASH_BITS(table))], member)
#define hash_for_each_possible_safe(table, at, spare, member, key) \
	hlist_for_each_entry_safe(at, spare, &(table)[hash_min(key, HASH_BITS(table))], member)

#endif
