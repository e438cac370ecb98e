/*
 * <linux/list_lru.h> for kernel code that is compiled into a program: objects in the order in which they were used, which a
 * shrinker walks from the oldest. There is one list with one lock: nodes and memory control groups are not looked at.
 * list_lru_add and list_lru_del take what those of 6.1 take, or a node and a group as well, as since 6.8.
 */
#ifndef SLABYARD_KERNEL_LINUX_LIST_LRU_H
#define SLABYARD_KERNEL_LINUX_LIST_LRU_H

#pragma GCC system_header

#include "list.h"
#include "shrinker.h"
#include "spinlock.h"

/* What a walk does next: the object was taken out; so, with the lock let go meanwhile; it goes to the young end; it stays; it
 * stays, and the lock was let go. Whoever let the lock go has it again. */
enum lru_status {
	LRU_REMOVED,
	LRU_REMOVED_RETRY,
	LRU_ROTATE,
	LRU_SKIP,
	LRU_RETRY,
	LRU_STOP,
};

struct list_lru_one {
	struct list_head list;
	long nr_items;
};

struct list_lru {
	struct list_lru_one sy__one;
	spinlock_t sy__lock;
};

typedef enum lru_status (*list_lru_walk_cb)(struct list_head *item, struct list_lru_one *list, spinlock_t *lock, void *argument);

static inline int list_lru_init(struct list_lru *lru)
{
	INIT_LIST_HEAD(&lru->sy__one.list);
	lru->sy__one.nr_items = 0;
	spin_lock_init(&lru->sy__lock);
	return 0;
}

static inline void list_lru_destroy(struct list_lru *lru)
{
	(void)lru;
}

/* true: it was in no list before. */
static inline bool sy__list_lru_add(struct list_lru *lru, struct list_head *item)
{
	bool added;

	spin_lock(&lru->sy__lock);
	added = list_empty(item);
	if (added) {
		list_add_tail(item, &lru->sy__one.list);
		lru->sy__one.nr_items++;
	}
	spin_unlock(&lru->sy__lock);
	return added;
}

/* Of walks, which have the lock. */
static inline void list_lru_isolate(struct list_lru_one *list, struct list_head *item)
{
	list_del_init(item);
	list->nr_items--;
}

static inline void list_lru_isolate_move(struct list_lru_one *list, struct list_head *item, struct list_head *to)
{
	list_move(item, to);
	list->nr_items--;
}

/* true: it was in the list. */
static inline bool sy__list_lru_del(struct list_lru *lru, struct list_head *item)
{
	bool deleted;

	spin_lock(&lru->sy__lock);
	deleted = !list_empty(item);
	if (deleted)
		list_lru_isolate(&lru->sy__one, item);
	spin_unlock(&lru->sy__lock);
	return deleted;
}

static inline unsigned long list_lru_count(struct list_lru *lru)
{
	return (unsigned long)READ_ONCE(lru->sy__one.nr_items);
}

/* Asks about as many as *most, from the oldest; those that were taken out. What is looked at is taken off *most. */
static inline unsigned long sy__list_lru_walk(struct list_lru *lru, list_lru_walk_cb ask, void *argument, unsigned long *most)
{
	struct list_head *head = &lru->sy__one.list, *item, *next;
	unsigned long removed = 0;

	spin_lock(&lru->sy__lock);
	for (item = head->next; item != head && *most; item = next) {
		enum lru_status status;

		--*most;
		next = item->next;
		status = ask(item, &lru->sy__one, &lru->sy__lock, argument);
		if (status == LRU_REMOVED || status == LRU_REMOVED_RETRY)
			removed++;
		if (status == LRU_ROTATE)
			list_move_tail(item, head);
		if (status == LRU_REMOVED_RETRY || status == LRU_RETRY)
			next = head->next;
		if (status == LRU_STOP)
			break;
	}
	spin_unlock(&lru->sy__lock);
	return removed;
}

static inline unsigned long list_lru_walk(struct list_lru *lru, list_lru_walk_cb ask, void *argument, unsigned long most)
{
	return sy__list_lru_walk(lru, ask, argument, &most);
}

static inline unsigned long list_lru_shrink_walk(struct list_lru *lru, struct shrink_control *control, list_lru_walk_cb ask,
                                                 void *argument)
{
	return sy__list_lru_walk(lru, ask, argument, &control->nr_to_scan);
}

#define list_lru_add(lru, ...) sy__list_lru_add(lru, SY__LRU_ITEM(__VA_ARGS__, 0))
#define list_lru_del(lru, ...) sy__list_lru_del(lru, SY__LRU_ITEM(__VA_ARGS__, 0))
#define SY__LRU_ITEM(item, ...) item
#define list_lru_add_obj(lru, item) sy__list_lru_add(lru, item)
#define list_lru_del_obj(lru, item) sy__list_lru_del(lru, item)
#define list_lru_init_memcg(lru, shrinker) ((void)(shrinker), list_lru_init(lru))
#define list_lru_init_key(lru, key) ((void)(key), list_lru_init(lru))
#define list_lru_count_one(lru, node, group) ((void)(node), (void)(group), list_lru_count(lru))
#define list_lru_count_node(lru, node) ((void)(node), list_lru_count(lru))
#define list_lru_shrink_count(lru, control) ((void)(control), list_lru_count(lru))
#define list_lru_walk_one(lru, node, group, ask, argument, most) \
	((void)(node), (void)(group), sy__list_lru_walk(lru, ask, argument, most))
#define list_lru_walk_one_irq list_lru_walk_one
#define list_lru_walk_node(lru, node, ask, argument, most) ((void)(node), sy__list_lru_walk(lru, ask, argument, most))
#define list_lru_shrink_walk_irq list_lru_shrink_walk

#endif
