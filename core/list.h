/* Circular doubly linked lists with a sentinel (struct sy_list in types.h). The caller holds the list's lock. */
#ifndef SY_LIST_H
#define SY_LIST_H

#include "types.h"

#define sy__entry(link, TYPE, member) ((TYPE *)(void *)((char *)(link) - offsetof(TYPE, member)))

static inline void sy__list_init(struct sy_list *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool sy__list_empty(const struct sy_list *list)
{
	return list->next == list;
}

static inline void sy__list_insert(struct sy_list *link, struct sy_list *prev, struct sy_list *next)
{
	link->next = next;
	link->prev = prev;
	prev->next = link;
	next->prev = link;
}

static inline void sy__list_add_head(struct sy_list *list, struct sy_list *link)
{
	sy__list_insert(link, list, list->next);
}

static inline void sy__list_add_tail(struct sy_list *list, struct sy_list *link)
{
	sy__list_insert(link, list->prev, list);
}

static inline void sy__list_remove(struct sy_list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link->next = link;
	link->prev = link;
}

#endif
