/* <linux/llist.h> for kernel code that is compiled into a program: lists that any thread adds to without a lock, and that are taken whole. */
#ifndef SLABYARD_KERNEL_LINUX_LLIST_H
#define SLABYARD_KERNEL_LINUX_LLIST_H

#pragma GCC system_header

#include "atomic.h"
#include "container_of.h"

struct llist_node {
	struct llist_node *next;
};

struct llist_head {
	struct llist_node *first;
};

#define LLIST_HEAD_INIT(name) { NULL }
#define LLIST_HEAD(name) struct llist_head name = LLIST_HEAD_INIT(name)
#define llist_entry(pointer, type, member) container_of(pointer, type, member)
#define member_address_is_nonnull(pointer, member) ((unsigned long)(pointer) + offsetof(__typeof__(*(pointer)), member) != 0)

static inline void init_llist_head(struct llist_head *list)
{
	list->first = NULL;
}

static inline bool llist_empty(const struct llist_head *list)
{
	return READ_ONCE(list->first) == NULL;
}

static inline struct llist_node *llist_next(struct llist_node *node)
{
	return node->next;
}

/* Entries linked from first to last. True: the list was empty. */
static inline bool llist_add_batch(struct llist_node *first, struct llist_node *last, struct llist_head *list)
{
	struct llist_node *head = READ_ONCE(list->first);

	do
		last->next = head;
	while (!__atomic_compare_exchange_n(&list->first, &head, first, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return !head;
}

static inline bool llist_add(struct llist_node *node, struct llist_head *list)
{
	return llist_add_batch(node, node, list);
}

static inline struct llist_node *llist_del_all(struct llist_head *list)
{
	return xchg(&list->first, (struct llist_node *)NULL);
}

/* One caller at a time, beside any that add. */
static inline struct llist_node *llist_del_first(struct llist_head *list)
{
	struct llist_node *first = smp_load_acquire(&list->first);

	while (first && !__atomic_compare_exchange_n(&list->first, &first, first->next, true, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
		;
	return first;
}

static inline struct llist_node *llist_reverse_order(struct llist_node *head)
{
	struct llist_node *reversed = NULL, *next;

	for (; head; head = next) {
		next = head->next;
		head->next = reversed;
		reversed = head;
	}
	return reversed;
}

#define llist_for_each(at, node) for ((at) = (node); (at); (at) = (at)->next)
#define llist_for_each_safe(at, spare, node) for ((at) = (node); (at) && ((spare) = (at)->next, 1); (at) = (spare))
#define llist_for_each_entry(at, node, member) \
	for ((at) = llist_entry(node, __typeof__(*(at)), member); member_address_is_nonnull(at, member); \
	     (at) = llist_entry((at)->member.next, __typeof__(*(at)), member))
#define llist_for_each_entry_safe(at, spare, node, member) \
	for ((at) = llist_entry(node, __typeof__(*(at)), member); \
	     member_address_is_nonnull(at, member) && ((spare) = llist_entry((at)->member.next, __typeof__(*(at)), member), 1); \
	     (at) = (spare))

#endif
