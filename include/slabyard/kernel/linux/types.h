/* <linux/types.h> for kernel code that is compiled into a program. The C library's own headers read it too, in place of the system's. */
#ifndef SLABYARD_KERNEL_LINUX_TYPES_H
#define SLABYARD_KERNEL_LINUX_TYPES_H

#include "compiler.h"

#include <asm/types.h>
#include <limits.h>
#include <linux/posix_types.h>
#include <slabyard/kmem.h>
#include <sys/types.h>

#define __bitwise
#define __bitwise__

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

typedef __u16 __le16;
typedef __u16 __be16;
typedef __u32 __le32;
typedef __u32 __be32;
typedef __u64 __le64;
typedef __u64 __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;
typedef unsigned __poll_t;
typedef long long sy__loff_t;
#define loff_t sy__loff_t /* the C library may have another one, a long */
#define __aligned_u64 __u64 __attribute__((__aligned__(8)))
#define __aligned_s64 __s64 __attribute__((__aligned__(8)))
#define __aligned_be64 __be64 __attribute__((__aligned__(8)))
#define __aligned_le64 __le64 __attribute__((__aligned__(8)))

typedef u64 dma_addr_t;
typedef u64 phys_addr_t;
typedef phys_addr_t resource_size_t;
typedef u64 sector_t;
typedef unsigned fmode_t;
typedef unsigned short umode_t;
typedef unsigned long pgoff_t;
typedef unsigned long irq_hw_number_t;

#define U8_MAX ((u8)~0U)
#define S8_MAX ((s8)(U8_MAX >> 1))
#define S8_MIN ((s8)(-S8_MAX - 1))
#define U16_MAX ((u16)~0U)
#define S16_MAX ((s16)(U16_MAX >> 1))
#define S16_MIN ((s16)(-S16_MAX - 1))
#define U32_MAX ((u32)~0U)
#define S32_MAX ((s32)(U32_MAX >> 1))
#define S32_MIN ((s32)(-S32_MAX - 1))
#define U64_MAX ((u64)~0ULL)
#define S64_MAX ((s64)(U64_MAX >> 1))
#define S64_MIN ((s64)(-S64_MAX - 1))

#define BITS_PER_BYTE 8
#define BITS_PER_LONG (__SIZEOF_LONG__ * BITS_PER_BYTE)
#define BITS_TO_LONGS(bits) (((bits) + BITS_PER_LONG - 1) / BITS_PER_LONG)
#define DECLARE_BITMAP(name, bits) unsigned long name[BITS_TO_LONGS(bits)]

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

/* What waits for readers (rcupdate.h). */
struct callback_head {
	struct callback_head *next;
	void (*func)(struct callback_head *);
} __aligned(sizeof(void *));

#define rcu_head callback_head
typedef void (*rcu_callback_t)(struct rcu_head *);

#endif
