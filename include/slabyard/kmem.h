/*
 * slabyard under the kernel's names: what <linux/slab.h> and <linux/gfp.h> offer, for programs.
 *
 * 	struct kmem_cache *cache = KMEM_CACHE(session, SLAB_HWCACHE_ALIGN);
 * 	struct session *s = kmem_cache_zalloc(cache, GFP_KERNEL);
 * 	kmem_cache_free(cache, s);
 * 	kmem_cache_destroy(cache);
 *
 * Kernel code that includes <linux/slab.h> compiles unchanged with -I…/include/slabyard/kernel, which has that header. Everything
 * is on one heap of the whole process, opened by the first call. The environment variable SLABYARD chooses its policy and
 * tunables ("slab:batchcount=32"); unset: the default policy. libslabyard has the functions.
 *
 * Thread safety: any thread may call any function at any time, but a cache must not be destroyed while it is used. Not from
 * signal handlers, nor from constructors.
 *
 * Errors. An allocation without memory is NULL. With __GFP_NOFAIL and flags that may wait it is tried again for a second; then the
 * program ends with a line on standard error. Impossible sizes are NULL even then.
 *
 * Sizes and flags mean what they mean in Linux 6.1. Names that came later mean what they mean in the kernels that have them. The
 * differences:
 *
 *   A program has one memory node. Node numbers are ignored.
 *   Flags for reclaim and warnings (__GFP_NORETRY, __GFP_NOWARN, SLAB_KASAN, …) are accepted and do nothing. SLAB_CONSISTENCY_CHECKS,
 *   SLAB_RED_ZONE, SLAB_POISON and SLAB_STORE_USER check the cache's objects; a bug ends the program with a report.
 *   GFP_ATOMIC and GFP_NOWAIT don't ask other caches for memory.
 *   Slabs of SLAB_TYPESAFE_BY_RCU caches wait for the readers of linux/rcupdate.h, and are freed when the library next checks.
 */
#ifndef SLABYARD_KMEM_H
#define SLABYARD_KMEM_H

#include <slabyard/slabyard.h>

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- Flags ------------------------------------------------------------------------------------------------------ */

typedef unsigned gfp_t;
typedef unsigned slab_flags_t;

/* The flags that the library acts on are its own (enum sy_flags). It ignores the other bits. */
#define __GFP_ZERO ((gfp_t)SY_ZERO)
#define __GFP_RECLAIMABLE ((gfp_t)SY_RECLAIMABLE)
#define __GFP_MOVABLE ((gfp_t)SY_MOVABLE)
#define __GFP_HIGH ((gfp_t)SY_HIGHATOMIC)
#define __GFP_ACCOUNT ((gfp_t)SY_ACCOUNT)
#define __GFP_DMA ((gfp_t)SY_DMA)
#define __GFP_DMA32 ((gfp_t)SY_DMA32)
#define __GFP_THISNODE ((gfp_t)SY_THISNODE)
#define __GFP_IO ((gfp_t)1 << 16)
#define __GFP_FS ((gfp_t)1 << 17)
#define __GFP_DIRECT_RECLAIM ((gfp_t)1 << 18)
#define __GFP_KSWAPD_RECLAIM ((gfp_t)1 << 19)
#define __GFP_RECLAIM (__GFP_DIRECT_RECLAIM | __GFP_KSWAPD_RECLAIM)
#define __GFP_NOWARN ((gfp_t)1 << 20)
#define __GFP_NORETRY ((gfp_t)1 << 21)
#define __GFP_RETRY_MAYFAIL ((gfp_t)1 << 22)
#define __GFP_NOFAIL ((gfp_t)1 << 23)
#define __GFP_NOMEMALLOC ((gfp_t)1 << 24)
#define __GFP_MEMALLOC ((gfp_t)1 << 25)
#define __GFP_HIGHMEM ((gfp_t)1 << 26)
#define __GFP_HARDWALL ((gfp_t)1 << 27)
#define __GFP_WRITE ((gfp_t)1 << 28)
#define __GFP_COMP ((gfp_t)1 << 29)
#define __GFP_ZEROTAGS ((gfp_t)1 << 30)
#define __GFP_NOLOCKDEP ((gfp_t)0)

#define GFP_KERNEL (__GFP_RECLAIM | __GFP_IO | __GFP_FS)
#define GFP_KERNEL_ACCOUNT (GFP_KERNEL | __GFP_ACCOUNT)
#define GFP_ATOMIC (__GFP_HIGH | __GFP_KSWAPD_RECLAIM | (gfp_t)SY_NO_RECLAIM)
#define GFP_NOWAIT (__GFP_KSWAPD_RECLAIM | (gfp_t)SY_NO_RECLAIM)
#define GFP_NOIO __GFP_RECLAIM
#define GFP_NOFS (__GFP_RECLAIM | __GFP_IO)
#define GFP_USER (GFP_KERNEL | __GFP_HARDWALL)
#define GFP_HIGHUSER (GFP_USER | __GFP_HIGHMEM)
#define GFP_HIGHUSER_MOVABLE (GFP_HIGHUSER | __GFP_MOVABLE)
#define GFP_TRANSHUGE_LIGHT ((GFP_HIGHUSER_MOVABLE | __GFP_COMP | __GFP_NOMEMALLOC | __GFP_NOWARN) & ~__GFP_RECLAIM)
#define GFP_TRANSHUGE (GFP_TRANSHUGE_LIGHT | __GFP_DIRECT_RECLAIM)
#define GFP_DMA __GFP_DMA
#define GFP_DMA32 __GFP_DMA32

static inline bool gfpflags_allow_blocking(gfp_t flags)
{
	return (flags & __GFP_DIRECT_RECLAIM) != 0;
}

static inline bool gfpflags_normal_context(gfp_t flags)
{
	return (flags & (__GFP_DIRECT_RECLAIM | __GFP_MEMALLOC)) == __GFP_DIRECT_RECLAIM;
}

static inline bool gfp_has_io_fs(gfp_t flags)
{
	return (flags & (__GFP_IO | __GFP_FS)) == (__GFP_IO | __GFP_FS);
}

#define SLAB_HWCACHE_ALIGN ((slab_flags_t)SY_CACHE_HWCACHE_ALIGN)
#define SLAB_TYPESAFE_BY_RCU ((slab_flags_t)SY_CACHE_TYPESAFE_BY_RCU)
#define SLAB_RECLAIM_ACCOUNT ((slab_flags_t)SY_CACHE_RECLAIMABLE)
#define SLAB_TEMPORARY SLAB_RECLAIM_ACCOUNT
#define SLAB_ACCOUNT ((slab_flags_t)SY_CACHE_ACCOUNT)
#define SLAB_CACHE_DMA ((slab_flags_t)SY_CACHE_DMA)
#define SLAB_CACHE_DMA32 ((slab_flags_t)SY_CACHE_DMA32)
#define SLAB_NO_MERGE ((slab_flags_t)SY_CACHE_NO_MERGE)
#define SLAB_PANIC ((slab_flags_t)1 << 16) /* a cache that cannot be created ends the program */
#define SLAB_CONSISTENCY_CHECKS ((slab_flags_t)1 << 17)
#define SLAB_RED_ZONE ((slab_flags_t)1 << 18)
#define SLAB_POISON ((slab_flags_t)1 << 19)
#define SLAB_STORE_USER ((slab_flags_t)1 << 20)
#define SLAB_TRACE ((slab_flags_t)1 << 21)
#define SLAB_DEBUG_OBJECTS ((slab_flags_t)1 << 22)
#define SLAB_NOLEAKTRACE ((slab_flags_t)1 << 23)
#define SLAB_FAILSLAB ((slab_flags_t)1 << 24)
#define SLAB_MEM_SPREAD ((slab_flags_t)1 << 25)
#define SLAB_KASAN ((slab_flags_t)1 << 26)
#define SLAB_NO_USER_FLAGS ((slab_flags_t)1 << 27)

#ifndef NUMA_NO_NODE
#define NUMA_NO_NODE (-1)
#endif

#define ZERO_SIZE_PTR ((void *)16)
#define ZERO_OR_NULL_PTR(p) ((uintptr_t)(p) <= (uintptr_t)ZERO_SIZE_PTR)

#define KMALLOC_SHIFT_LOW 3
#define KMALLOC_SHIFT_HIGH (SY_PAGE_SHIFT + 1)
#define KMALLOC_SHIFT_MAX (SY_PAGE_SHIFT + SY_MAX_ORDER)
#define KMALLOC_MAX_SIZE (SY_PAGE_SIZE << SY_MAX_ORDER)
#define KMALLOC_MAX_CACHE_SIZE ((size_t)8192)
#define KMALLOC_MAX_ORDER SY_MAX_ORDER
#define KMALLOC_MIN_SIZE 8
#define SLAB_OBJ_MIN_SIZE KMALLOC_MIN_SIZE
#define ARCH_DMA_MINALIGN 8
#define ARCH_KMALLOC_MINALIGN 8
#define ARCH_SLAB_MINALIGN 8

/* ---- Caches ----------------------------------------------------------------------------------------------------- */

struct kmem_cache;
struct list_lru;

/* NULL: no memory, or impossible (size 0 or beyond KMALLOC_MAX_SIZE, align no power of two or beyond a page); with SLAB_PANIC
 * the program ends with a message instead. The name is copied. May return a cache that others share. */
struct kmem_cache *kmem_cache_create(const char *name, unsigned size, unsigned align, slab_flags_t flags,
                                     void (*ctor)(void *object));

/* Linux 6.12 and later: kmem_cache_create(name, size, args, flags), where args may be NULL. Only align and ctor have an effect. The
 * others are hints, or for checks that a program does not have. */
struct kmem_cache_args {
	unsigned align;
	unsigned useroffset, usersize;
	unsigned freeptr_offset;
	bool use_freeptr_offset;
	void (*ctor)(void *object);
	unsigned sheaf_capacity;
};

static inline struct kmem_cache *sy__kmem_cache_create_args(const char *name, unsigned size, const struct kmem_cache_args *args,
                                                            slab_flags_t flags)
{
	return kmem_cache_create(name, size, args ? args->align : 0, flags, args ? args->ctor : NULL);
}

#define SY__SIXTH(a, b, c, d, e, sixth, ...) sixth
#define kmem_cache_create(...) \
	SY__SIXTH(__VA_ARGS__, kmem_cache_create, sy__kmem_cache_create_args, sy__no_such_form, sy__no_such_form, 0)(__VA_ARGS__)

static inline struct kmem_cache *kmem_cache_create_usercopy(const char *name, unsigned size, unsigned align,
                                                            slab_flags_t flags, unsigned useroffset, unsigned usersize,
                                                            void (*ctor)(void *object))
{
	(void)useroffset;
	(void)usersize;
	return kmem_cache_create(name, size, align, flags, ctor);
}

#define KMEM_CACHE(type, flags) kmem_cache_create(#type, sizeof(struct type), __alignof__(struct type), (flags), NULL)
#define KMEM_CACHE_USERCOPY(type, flags, field) \
	kmem_cache_create_usercopy(#type, sizeof(struct type), __alignof__(struct type), (flags), \
	                           offsetof(struct type, field), sizeof(((struct type *)0)->field), NULL)

/* NULL does nothing. A cache with objects in use stays, and a line on standard error says so, as in the kernel's log. */
void kmem_cache_destroy(struct kmem_cache *);

/* Gives back slabs without objects; 0. */
int kmem_cache_shrink(struct kmem_cache *);

/* Bytes that an object may use. */
unsigned kmem_cache_size(struct kmem_cache *);

void *kmem_cache_alloc(struct kmem_cache *, gfp_t);
void kmem_cache_free(struct kmem_cache *, void *object);

static inline void *kmem_cache_zalloc(struct kmem_cache *cache, gfp_t flags)
{
	return kmem_cache_alloc(cache, flags | __GFP_ZERO);
}

/* Functions that name a memory node ignore it, as a program's memory has one. */
#define SY__ON_NODE(type, name, parameters, result) \
	static inline type name parameters \
	{ \
		(void)node; \
		return result; \
	}

SY__ON_NODE(void *, kmem_cache_alloc_node, (struct kmem_cache *cache, gfp_t flags, int node), kmem_cache_alloc(cache, flags))

static inline void *kmem_cache_alloc_lru(struct kmem_cache *cache, struct list_lru *lru, gfp_t flags)
{
	(void)lru;
	return kmem_cache_alloc(cache, flags);
}

/* Allocates all of them and returns their number, or allocates none and returns 0. */
int kmem_cache_alloc_bulk(struct kmem_cache *, gfp_t, size_t count, void **objects);

/* A cache of NULL: objects of kmalloc. */
void kmem_cache_free_bulk(struct kmem_cache *, size_t count, void **objects);

/* ---- Sizes ------------------------------------------------------------------------------------------------------ */

/* ZERO_SIZE_PTR of size 0. */
void *kmalloc(size_t size, gfp_t);

/* Frees what kmalloc returned, NULL or ZERO_SIZE_PTR. Frees a cache's object too, but not under slob, bsd44, svr4 and sunos4: they
 * can't tell it from one of kmalloc, as Linux's SLOB couldn't. There only kmem_cache_free frees it. */
void kfree(const void *object);

/* As kfree, and clears the object before. */
void kfree_sensitive(const void *object);

/* Bytes that may be written to what kfree takes: at least those that were asked for; 0 of NULL. */
size_t ksize(const void *object);

/* Changes an object's size, keeping its contents up to the smaller size. NULL: no memory, and the object is as it was. New size 0:
 * frees the object and returns ZERO_SIZE_PTR. With __GFP_ZERO the bytes beyond the old usable size are zero. */
void *krealloc(const void *object, size_t size, gfp_t);

static inline void *kzalloc(size_t size, gfp_t flags)
{
	return kmalloc(size, flags | __GFP_ZERO);
}

SY__ON_NODE(void *, kmalloc_node, (size_t size, gfp_t flags, int node), kmalloc(size, flags))
SY__ON_NODE(void *, kzalloc_node, (size_t size, gfp_t flags, int node), kzalloc(size, flags))

/* Sums and products that become SIZE_MAX where they don't fit, so that allocation refuses them. linux/overflow.h has all of them. */
static inline size_t sy__size_mul(size_t a, size_t b)
{
	size_t bytes;

	return __builtin_mul_overflow(a, b, &bytes) ? SIZE_MAX : bytes;
}

static inline size_t sy__size_add(size_t a, size_t b)
{
	size_t bytes;

	return __builtin_add_overflow(a, b, &bytes) ? SIZE_MAX : bytes;
}

/* NULL if the product does not fit in a size_t, as in the next functions. */
static inline void *kmalloc_array(size_t count, size_t size, gfp_t flags)
{
	return kmalloc(sy__size_mul(count, size), flags);
}

static inline void *kcalloc(size_t count, size_t size, gfp_t flags)
{
	return kmalloc_array(count, size, flags | __GFP_ZERO);
}

SY__ON_NODE(void *, kmalloc_array_node, (size_t count, size_t size, gfp_t flags, int node), kmalloc_array(count, size, flags))
SY__ON_NODE(void *, kcalloc_node, (size_t count, size_t size, gfp_t flags, int node), kcalloc(count, size, flags))

#ifndef struct_size
#define array_size(a, b) sy__size_mul(a, b)
#define array3_size(a, b, c) sy__size_mul(sy__size_mul(a, b), c)
/* Of a structure that ends in an array of count elements; nothing is read through the pointer. */
#define flex_array_size(pointer, member, count) sy__size_mul(count, sizeof(*(pointer)->member))
#define struct_size(pointer, member, count) sy__size_add(sizeof(*(pointer)), flex_array_size(pointer, member, count))
#define struct_size_t(type, member, count) struct_size((type *)0, member, count)
#endif

static inline void *krealloc_array(void *object, size_t count, size_t size, gfp_t flags)
{
	return krealloc(object, sy__size_mul(count, size), flags);
}

static inline void kfree_bulk(size_t count, void **objects)
{
	kmem_cache_free_bulk(NULL, count, objects);
}

/* The size of the object that a request gets. Here a request may use only what it asks for. */
static inline size_t kmalloc_size_roundup(size_t size)
{
	return size;
}

/* Whether an address is in a slab or a large object of the heap. kmem_dump_obj writes a line to standard error: in which one, and
 * where. Both look at all slabs. */
bool kmem_valid_obj(void *address);
void kmem_dump_obj(void *address);

static inline bool slab_is_available(void)
{
	return true;
}

#define kzfree(object) kfree_sensitive(object)
#define __kmalloc(size, flags) kmalloc(size, flags)
#define __kmalloc_node(size, flags, node) kmalloc_node(size, flags, node)
#define kmalloc_track_caller(size, flags) kmalloc(size, flags)
#define kmalloc_node_track_caller(size, flags, node) kmalloc_node(size, flags, node)

/* ---- Any size --------------------------------------------------------------------------------------------------- */

/* As kmalloc; beyond KMALLOC_MAX_SIZE, or where the heap has no memory, straight from the operating system. */
void *kvmalloc(size_t size, gfp_t);

/* Frees what kvmalloc or kmalloc returned, NULL or ZERO_SIZE_PTR. */
void kvfree(const void *object);
void kvfree_sensitive(const void *object, size_t size);

/* Changes an object's size, perhaps its address. NULL: no memory, and the object is as it was. With __GFP_ZERO the bytes beyond the
 * old size are zero. */
void *kvrealloc(const void *object, size_t old_size, size_t new_size, gfp_t);

/* Linux 6.12 and later: kvrealloc(object, size, flags), without the old size. */
void *sy__kvrealloc_known(const void *object, size_t size, gfp_t);

#define SY__FIFTH(a, b, c, d, fifth, ...) fifth
#define kvrealloc(...) SY__FIFTH(__VA_ARGS__, kvrealloc, sy__kvrealloc_known, sy__no_such_form, 0)(__VA_ARGS__)

static inline void *kvzalloc(size_t size, gfp_t flags)
{
	return kvmalloc(size, flags | __GFP_ZERO);
}

SY__ON_NODE(void *, kvmalloc_node, (size_t size, gfp_t flags, int node), kvmalloc(size, flags))
SY__ON_NODE(void *, kvzalloc_node, (size_t size, gfp_t flags, int node), kvzalloc(size, flags))

static inline void *kvmalloc_array(size_t count, size_t size, gfp_t flags)
{
	return kvmalloc(sy__size_mul(count, size), flags);
}

static inline void *kvcalloc(size_t count, size_t size, gfp_t flags)
{
	return kvmalloc_array(count, size, flags | __GFP_ZERO);
}

SY__ON_NODE(void *, kvcalloc_node, (size_t count, size_t size, gfp_t flags, int node), kvcalloc(count, size, flags))
SY__ON_NODE(void *, kvmalloc_array_node, (size_t count, size_t size, gfp_t flags, int node), kvmalloc_array(count, size, flags))

/* An object straight from the operating system; and whether what kvfree takes is one. */
void *sy__vmalloc(size_t size, gfp_t);
bool sy__is_mapped(const void *address);

static inline bool is_vmalloc_addr(const void *address)
{
	return sy__is_mapped(address);
}

/* ---- Objects of a type ------------------------------------------------------------------------------------------ */

/* Linux 7.0 and later: kmalloc_obj(type or variable), which returns a pointer to that type; count of them; one that ends in an
 * array of count elements. Flags may follow; without them it is GFP_KERNEL. */
#define SY__FLAGS(flags, ...) (flags)
#define SY__OBJ(alloc, what, ...) ((__typeof__(what) *)alloc(sizeof(__typeof__(what)), SY__FLAGS(__VA_ARGS__)))
#define SY__OBJS(alloc, what, count, ...) ((__typeof__(what) *)alloc(count, sizeof(__typeof__(what)), SY__FLAGS(__VA_ARGS__)))
#define SY__FLEX(alloc, what, member, count, ...) \
	((__typeof__(what) *)alloc(struct_size((__typeof__(what) *)0, member, count), SY__FLAGS(__VA_ARGS__)))
#define kmalloc_obj(...) SY__OBJ(kmalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kzalloc_obj(...) SY__OBJ(kzalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kvmalloc_obj(...) SY__OBJ(kvmalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kvzalloc_obj(...) SY__OBJ(kvzalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kmalloc_objs(...) SY__OBJS(kmalloc_array, __VA_ARGS__, GFP_KERNEL, 0)
#define kzalloc_objs(...) SY__OBJS(kcalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kvmalloc_objs(...) SY__OBJS(kvmalloc_array, __VA_ARGS__, GFP_KERNEL, 0)
#define kvzalloc_objs(...) SY__OBJS(kvcalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kmalloc_flex(...) SY__FLEX(kmalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kzalloc_flex(...) SY__FLEX(kzalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kvmalloc_flex(...) SY__FLEX(kvmalloc, __VA_ARGS__, GFP_KERNEL, 0)
#define kvzalloc_flex(...) SY__FLEX(kvzalloc, __VA_ARGS__, GFP_KERNEL, 0)

/* ---- Copies ----------------------------------------------------------------------------------------------------- */

/* NULL: no memory, or the source is NULL. */
char *kstrdup(const char *string, gfp_t);
char *kstrndup(const char *string, size_t most, gfp_t);
void *kmemdup(const void *memory, size_t size, gfp_t);
void *kvmemdup(const void *memory, size_t size, gfp_t);
char *kmemdup_nul(const char *memory, size_t size, gfp_t);
char *kvasprintf(gfp_t, const char *format, va_list) __attribute__((format(printf, 2, 0)));
const char *kvasprintf_const(gfp_t, const char *format, va_list) __attribute__((format(printf, 2, 0)));
char *kasprintf(gfp_t, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void *kmemdup_array(const void *memory, size_t size, size_t count, gfp_t flags)
{
	return kmemdup(memory, sy__size_mul(count, size), flags);
}

/* Copies constants too, because nothing tells where a program has them. */
static inline const char *kstrdup_const(const char *string, gfp_t flags)
{
	return kstrdup(string, flags);
}

static inline void kfree_const(const void *string)
{
	kfree(string);
}

/* ---- Pages ------------------------------------------------------------------------------------------------------ */

/* 2^order pages, aligned to their size (under sunos4 to a page); their address as a number. 0: no memory, or an order beyond
 * KMALLOC_MAX_ORDER. */
static inline unsigned long __get_free_pages(gfp_t flags, unsigned order)
{
	return order > KMALLOC_MAX_ORDER ? 0 : (unsigned long)(uintptr_t)kmalloc(SY_PAGE_SIZE << order, flags);
}

/* 0 does nothing. */
static inline void free_pages(unsigned long address, unsigned order)
{
	(void)order;
	kfree((const void *)(uintptr_t)address);
}

static inline unsigned long __get_free_page(gfp_t flags)
{
	return __get_free_pages(flags, 0);
}

static inline unsigned long get_zeroed_page(gfp_t flags)
{
	return __get_free_page(flags | __GFP_ZERO);
}

static inline void free_page(unsigned long address)
{
	free_pages(address, 0);
}

/* Page-aligned, of whole pages. NULL: no memory, or more than KMALLOC_MAX_SIZE. */
static inline void *alloc_pages_exact(size_t size, gfp_t flags)
{
	return size > KMALLOC_MAX_SIZE ? NULL : kmalloc((size + SY_PAGE_SIZE - 1) & ~(SY_PAGE_SIZE - 1), flags);
}

static inline void free_pages_exact(void *address, size_t size)
{
	(void)size;
	kfree(address);
}

/* The same by descriptor, which is opaque to programs. */
struct page;

struct page *sy__page_of_address(const void *address);
void *sy__address_of_page(const struct page *page);

/* NULL: not in the heap, for example what kvmalloc got from the operating system. */
static inline struct page *virt_to_page(const void *address)
{
	return sy__page_of_address(address);
}

static inline void *page_address(const struct page *page)
{
	return sy__address_of_page(page);
}

static inline struct page *alloc_pages(gfp_t flags, unsigned order)
{
	unsigned long address = __get_free_pages(flags, order);

	return address ? virt_to_page((const void *)(uintptr_t)address) : NULL;
}

SY__ON_NODE(struct page *, alloc_pages_node, (int node, gfp_t flags, unsigned order), alloc_pages(flags, order))

static inline struct page *alloc_page(gfp_t flags)
{
	return alloc_pages(flags, 0);
}

/* NULL does nothing. */
static inline void __free_pages(struct page *page, unsigned order)
{
	if (page)
		free_pages((unsigned long)(uintptr_t)page_address(page), order);
}

static inline void __free_page(struct page *page)
{
	__free_pages(page, 0);
}

#define virt_to_head_page(address) virt_to_page(address)
#define page_to_virt(page) page_address(page)
#define offset_in_page(address) ((unsigned long)(uintptr_t)(address) & (SY_PAGE_SIZE - 1))
#ifndef PAGE_SIZE /* musl's <limits.h> has this one alone */
#define PAGE_SIZE ((unsigned long)SY_PAGE_SIZE)
#endif
#ifndef PAGE_SHIFT
#define PAGE_SHIFT SY_PAGE_SHIFT
#endif
#ifndef PAGE_MASK
#define PAGE_MASK (~((unsigned long)PAGE_SIZE - 1))
#endif
#ifndef PAGE_ALIGN
#define PAGE_ALIGN(address) (((address) + PAGE_SIZE - 1) & PAGE_MASK)
#endif

/* ---- The heap behind it ----------------------------------------------------------------------------------------- */

/* The heap, for calls of slabyard.h beyond these names: statistics, sy_heap_trim, sy_heap_check. NULL: no memory for a heap. */
struct sy_heap *sy_kmem_heap(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
