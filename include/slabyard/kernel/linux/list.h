/* <linux/list.h> for kernel code that is compiled into a program: doubly linked lists, and those of a hash table. */
#ifndef SLABYARD_KERNEL_LINUX_LIST_H
#define SLABYARD_KERNEL_LINUX_LIST_H

#pragma GCC system_header

#include "container_of.h"
#include "types.h"

#define LIST_POISON1 ((void *)0x100)
#define LIST_POISON2 ((void *)0x122)

#define LIST_HEAD_INIT(name) { &(name), &(name) }
#define LIST_HEAD(name) struct list_head name = LIST_HEAD_INIT(name)

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	WRITE_ONCE(list->next, list);
	WRITE_ONCE(list->prev, list);
}

static inline void sy__list_join(struct list_head *before, struct list_head *after)
{
	after->prev = before;
	WRITE_ONCE(before->next, after);
}

/* Links whole chains, first to last, behind a place. */
static inline void sy__list_insert(struct list_head *first, struct list_head *last, struct list_head *place)
{
	struct list_head *after = place->next;

	sy__list_join(last, after);
	sy__list_join(place, first);
}

static inline void list_add(struct list_head *entry, struct list_head *head)
{
	sy__list_insert(entry, entry, head);
}

static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	sy__list_insert(entry, entry, head->prev);
}

static inline void __list_del_entry(struct list_head *entry)
{
	sy__list_join(entry->prev, entry->next);
}

static inline void list_del(struct list_head *entry)
{
	__list_del_entry(entry);
	entry->next = (struct list_head *)LIST_POISON1;
	entry->prev = (struct list_head *)LIST_POISON2;
}

static inline void list_del_init(struct list_head *entry)
{
	__list_del_entry(entry);
	INIT_LIST_HEAD(entry);
}

static inline void list_replace(struct list_head *old, struct list_head *entry)
{
	sy__list_join(entry, old->next);
	sy__list_join(old->prev, entry);
}

static inline void list_replace_init(struct list_head *old, struct list_head *entry)
{
	list_replace(old, entry);
	INIT_LIST_HEAD(old);
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	__list_del_entry(entry);
	list_add(entry, head);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *head)
{
	__list_del_entry(entry);
	list_add_tail(entry, head);
}

static inline int list_empty(const struct list_head *head)
{
	return READ_ONCE(head->next) == head;
}

static inline int list_empty_careful(const struct list_head *head)
{
	return list_empty(head) && READ_ONCE(head->prev) == head;
}

static inline int list_is_singular(const struct list_head *head)
{
	return !list_empty(head) && head->next == head->prev;
}

static inline int list_is_head(const struct list_head *entry, const struct list_head *head)
{
	return entry == head;
}

static inline int list_is_first(const struct list_head *entry, const struct list_head *head)
{
	return entry->prev == head;
}

static inline int list_is_last(const struct list_head *entry, const struct list_head *head)
{
	return entry->next == head;
}

static inline void list_swap(struct list_head *one, struct list_head *two)
{
	struct list_head *place = two->prev;

	list_del(two);
	list_replace(one, two);
	list_add(one, place == one ? two : place);
}

static inline void list_rotate_left(struct list_head *head)
{
	if (!list_empty(head))
		list_move_tail(head->next, head);
}

/* Inserts all of another list. Only the functions with init in their names leave the other list usable. */
static inline void list_splice(const struct list_head *list, struct list_head *head)
{
	if (!list_empty(list))
		sy__list_insert(list->next, list->prev, head);
}

static inline void list_splice_tail(struct list_head *list, struct list_head *head)
{
	list_splice(list, head->prev);
}

static inline void list_splice_init(struct list_head *list, struct list_head *head)
{
	list_splice(list, head);
	INIT_LIST_HEAD(list);
}

static inline void list_splice_tail_init(struct list_head *list, struct list_head *head)
{
	list_splice_tail(list, head);
	INIT_LIST_HEAD(list);
}

/* Moves the entries of head up to this one to the list, which is overwritten. */
static inline void list_cut_position(struct list_head *list, struct list_head *head, struct list_head *entry)
{
	struct list_head *first = head->next;

	INIT_LIST_HEAD(list);
	if (list_empty(head) || entry == head)
		return;
	sy__list_join(head, entry->next);
	sy__list_insert(first, entry, list);
}

/* Moves the entries before this one. */
static inline void list_cut_before(struct list_head *list, struct list_head *head, struct list_head *entry)
{
	if (head->next == entry)
		INIT_LIST_HEAD(list);
	else
		list_cut_position(list, head, entry->prev);
}

static inline void list_rotate_to_front(struct list_head *entry, struct list_head *head)
{
	list_move_tail(head, entry);
}

/* Moves a part of another list, first to last. */
static inline void list_bulk_move_tail(struct list_head *head, struct list_head *first, struct list_head *last)
{
	sy__list_join(first->prev, last->next);
	sy__list_insert(first, last, head->prev);
}

static inline void list_del_init_careful(struct list_head *entry)
{
	__list_del_entry(entry);
	WRITE_ONCE(entry->prev, entry);
	__atomic_store_n(&entry->next, entry, __ATOMIC_RELEASE);
}

static inline size_t list_count_nodes(struct list_head *head)
{
	struct list_head *at;
	size_t count = 0;

	for (at = head->next; at != head; at = at->next)
		count++;
	return count;
}

#define list_entry(pointer, type, member) container_of(pointer, type, member)
#define list_first_entry(head, type, member) list_entry((head)->next, type, member)
#define list_last_entry(head, type, member) list_entry((head)->prev, type, member)
#define list_first_entry_or_null(head, type, member) (list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_next_entry(at, member) list_entry((at)->member.next, __typeof__(*(at)), member)
#define list_prev_entry(at, member) list_entry((at)->member.prev, __typeof__(*(at)), member)
#define list_entry_is_head(at, head, member) (&(at)->member == (head))

#define list_for_each(at, head) for ((at) = (head)->next; (at) != (head); (at) = (at)->next)
#define list_for_each_prev(at, head) for ((at) = (head)->prev; (at) != (head); (at) = (at)->prev)
#define list_for_each_continue(at, head) for ((at) = (at)->next; (at) != (head); (at) = (at)->next)
#define list_for_each_prev_safe(at, spare, head) \
	for ((at) = (head)->prev, (spare) = (at)->prev; (at) != (head); (at) = (spare), (spare) = (at)->prev)
#define list_for_each_safe(at, spare, head) \
	for ((at) = (head)->next, (spare) = (at)->next; (at) != (head); (at) = (spare), (spare) = (at)->next)
#define list_for_each_entry(at, head, member) \
	for ((at) = list_first_entry(head, __typeof__(*(at)), member); !list_entry_is_head(at, head, member); \
	     (at) = list_next_entry(at, member))
#define list_for_each_entry_reverse(at, head, member) \
	for ((at) = list_last_entry(head, __typeof__(*(at)), member); !list_entry_is_head(at, head, member); \
	     (at) = list_prev_entry(at, member))
#define list_for_each_entry_continue(at, head, member) \
	for ((at) = list_next_entry(at, member); !list_entry_is_head(at, head, member); (at) = list_next_entry(at, member))
#define list_for_each_entry_continue_reverse(at, head, member) \
	for ((at) = list_prev_entry(at, member); !list_entry_is_head(at, head, member); (at) = list_prev_entry(at, member))
#define list_for_each_entry_from(at, head, member) \
	for (; !list_entry_is_head(at, head, member); (at) = list_next_entry(at, member))
#define list_for_each_entry_from_reverse(at, head, member) \
	for (; !list_entry_is_head(at, head, member); (at) = list_prev_entry(at, member))
#define list_for_each_entry_safe(at, spare, head, member) \
	for ((at) = list_first_entry(head, __typeof__(*(at)), member), (spare) = list_next_entry(at, member); \
	     !list_entry_is_head(at, head, member); (at) = (spare), (spare) = list_next_entry(spare, member))
#define list_for_each_entry_safe_reverse(at, spare, head, member) \
	for ((at) = list_last_entry(head, __typeof__(*(at)), member), (spare) = list_prev_entry(at, member); \
	     !list_entry_is_head(at, head, member); (at) = (spare), (spare) = list_prev_entry(spare, member))
#define list_for_each_entry_safe_from(at, spare, head, member) \
	for ((spare) = list_next_entry(at, member); !list_entry_is_head(at, head, member); \
	     (at) = (spare), (spare) = list_next_entry(spare, member))
#define list_for_each_entry_safe_continue(at, spare, head, member) \
	for ((at) = list_next_entry(at, member), (spare) = list_next_entry(at, member); !list_entry_is_head(at, head, member); \
	     (at) = (spare), (spare) = list_next_entry(spare, member))
#define list_prepare_entry(at, head, member) ((at) ? (at) : list_entry(head, __typeof__(*(at)), member))
#define list_safe_reset_next(at, spare, member) ((spare) = list_next_entry(at, member))

/* ---- Those of a hash table: a head of one word ------------------------------------------------------------------ */

#define HLIST_HEAD_INIT { NULL }
#define HLIST_HEAD(name) struct hlist_head name = HLIST_HEAD_INIT
#define INIT_HLIST_HEAD(head) ((head)->first = NULL)

static inline void INIT_HLIST_NODE(struct hlist_node *node)
{
	node->next = NULL;
	node->pprev = NULL;
}

static inline int hlist_unhashed(const struct hlist_node *node)
{
	return !node->pprev;
}

static inline int hlist_empty(const struct hlist_head *head)
{
	return !READ_ONCE(head->first);
}

/* place: the link to insert at, in the head or in the node before. */
static inline void sy__hlist_insert(struct hlist_node *node, struct hlist_node **place)
{
	node->next = *place;
	node->pprev = place;
	if (node->next)
		node->next->pprev = &node->next;
	__atomic_store_n(place, node, __ATOMIC_RELEASE);
}

static inline void __hlist_del(struct hlist_node *node)
{
	WRITE_ONCE(*node->pprev, node->next);
	if (node->next)
		node->next->pprev = node->pprev;
}

static inline void hlist_del(struct hlist_node *node)
{
	__hlist_del(node);
	node->next = (struct hlist_node *)LIST_POISON1;
	node->pprev = (struct hlist_node **)LIST_POISON2;
}

static inline void hlist_del_init(struct hlist_node *node)
{
	if (hlist_unhashed(node))
		return;
	__hlist_del(node);
	INIT_HLIST_NODE(node);
}

static inline void hlist_add_head(struct hlist_node *node, struct hlist_head *head)
{
	sy__hlist_insert(node, &head->first);
}

static inline void hlist_add_before(struct hlist_node *node, struct hlist_node *next)
{
	sy__hlist_insert(node, next->pprev);
}

static inline void hlist_add_behind(struct hlist_node *node, struct hlist_node *before)
{
	sy__hlist_insert(node, &before->next);
}

static inline void hlist_move_list(struct hlist_head *old, struct hlist_head *head)
{
	head->first = old->first;
	if (head->first)
		head->first->pprev = &head->first;
	old->first = NULL;
}

/* Lets a node that is on no list be deleted as if it were on one. */
static inline void hlist_add_fake(struct hlist_node *node)
{
	node->pprev = &node->next;
}

static inline bool hlist_fake(struct hlist_node *node)
{
	return node->pprev == &node->next;
}

static inline bool hlist_is_singular_node(struct hlist_node *node, struct hlist_head *head)
{
	return !node->next && node->pprev == &head->first;
}

static inline int hlist_unhashed_lockless(const struct hlist_node *node)
{
	return !READ_ONCE(node->pprev);
}

#define hlist_entry(pointer, type, member) container_of(pointer, type, member)
#define hlist_entry_safe(pointer, type, member) \
	__extension__ ({ \
		__typeof__(pointer) sy__node = (pointer); \
		sy__node ? hlist_entry(sy__node, type, member) : NULL; \
	})
#define hlist_for_each(at, head) for ((at) = (head)->first; (at); (at) = (at)->next)
#define hlist_for_each_safe(at, spare, head) \
	for ((at) = (head)->first; (at) && ((spare) = (at)->next, 1); (at) = (spare))
#define hlist_for_each_entry(at, head, member) \
	for ((at) = hlist_entry_safe((head)->first, __typeof__(*(at)), member); (at); \
	     (at) = hlist_entry_safe((at)->member.next, __typeof__(*(at)), member))
#define hlist_for_each_entry_continue(at, member) \
	for ((at) = hlist_entry_safe((at)->member.next, __typeof__(*(at)), member); (at); \
	     (at) = hlist_entry_safe((at)->member.next, __typeof__(*(at)), member))
#define hlist_for_each_entry_from(at, member) \
	for (; (at); (at) = hlist_entry_safe((at)->member.next, __typeof__(*(at)), member))
#define hlist_for_each_entry_safe(at, spare, head, member) \
	for ((at) = hlist_entry_safe((head)->first, __typeof__(*(at)), member); (at) && ((spare) = (at)->member.next, 1); \
	     (at) = hlist_entry_safe(spare, __typeof__(*(at)), member))

#endif
