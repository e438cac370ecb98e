/* As much of the kernel's headers as the module of this test uses besides the allocator: printk, errors, entry points, lists. */
#ifndef TEST_KMEM_LINUX_MODULE_H
#define TEST_KMEM_LINUX_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define ENOMEM 12
#define EEXIST 17
#define ENOENT 2

#define __init
#define __exit
#define MODULE_LICENSE(text) _Static_assert(sizeof(text) > 1, "a module has a licence")
#define pr_err(...) fprintf(stderr, __VA_ARGS__)
#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *list)
{
	return list->next == list;
}

static inline void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->prev = list->prev;
	entry->next = list;
	list->prev->next = entry;
	list->prev = entry;
}

static inline void list_del_init(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
}

#define list_for_each(at, list) for ((at) = (list)->next; (at) != (list); (at) = (at)->next)
#define list_first_entry(list, type, member) container_of((list)->next, type, member)

#endif
