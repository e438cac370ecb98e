/* <linux/rculist.h> for kernel code that is compiled into a program: lists with readers while one writer changes them. */
#ifndef SLABYARD_KERNEL_LINUX_RCULIST_H
#define SLABYARD_KERNEL_LINUX_RCULIST_H

#pragma GCC system_header

#include "list.h"
#include "rcupdate.h"

static inline void sy__list_publish(struct list_head *entry, struct list_head *before, struct list_head *after)
{
	entry->next = after;
	entry->prev = before;
	rcu_assign_pointer(before->next, entry);
	after->prev = entry;
}

static inline void list_add_rcu(struct list_head *entry, struct list_head *head)
{
	sy__list_publish(entry, head, head->next);
}

static inline void list_add_tail_rcu(struct list_head *entry, struct list_head *head)
{
	sy__list_publish(entry, head->prev, head);
}

/* The entry's link to the next one stays, for its readers. */
static inline void list_del_rcu(struct list_head *entry)
{
	__list_del_entry(entry);
	entry->prev = (struct list_head *)LIST_POISON2;
}

static inline void list_replace_rcu(struct list_head *old, struct list_head *entry)
{
	sy__list_publish(entry, old->prev, old->next);
	old->prev = (struct list_head *)LIST_POISON2;
}

static inline void hlist_add_head_rcu(struct hlist_node *node, struct hlist_head *head)
{
	hlist_add_head(node, head);
}

static inline void hlist_del_rcu(struct hlist_node *node)
{
	__hlist_del(node);
	node->pprev = (struct hlist_node **)LIST_POISON2;
}

static inline void hlist_del_init_rcu(struct hlist_node *node)
{
	if (hlist_unhashed(node))
		return;
	__hlist_del(node);
	node->pprev = NULL;
}

#define list_next_rcu(head) ((head)->next)
#define hlist_first_rcu(head) ((head)->first)
#define hlist_next_rcu(node) ((node)->next)
#define list_entry_rcu(pointer, type, member) container_of(rcu_dereference(pointer), type, member)
#define list_first_or_null_rcu(head, type, member) \
	__extension__ ({ \
		struct list_head *sy__next = rcu_dereference((head)->next); \
		sy__next == (head) ? NULL : list_entry(sy__next, type, member); \
	})
#define list_for_each_entry_rcu(at, head, member, ...) \
	for ((at) = list_entry_rcu((head)->next, __typeof__(*(at)), member); !list_entry_is_head(at, head, member); \
	     (at) = list_entry_rcu((at)->member.next, __typeof__(*(at)), member))
#define hlist_for_each_entry_rcu(at, head, member, ...) \
	for ((at) = hlist_entry_safe(rcu_dereference((head)->first), __typeof__(*(at)), member); (at); \
	     (at) = hlist_entry_safe(rcu_dereference((at)->member.next), __typeof__(*(at)), member))

#endif
