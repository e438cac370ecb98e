/*
 * The slab API under the kernel's names (slabyard/kmem.h), on one heap of the whole process.
 *
 * Fast paths. kmem_cache_alloc and kmem_cache_free are one jump each, to functions that the cache names. kmalloc is a load of the
 * heap and a jump to a function that the heap names. No call asks whether the heap is open: until then a stand-in takes its
 * place, whose two functions open the heap and try again. The policies' functions take the heap as their last argument, so no
 * argument moves between registers.
 *
 * Opening. The first caller opens the heap: with the spec in SLABYARD, or with the default policy if that is unset or makes no
 * sense (a line on standard error then says why). Of several first callers one wins. The heap is never closed, because others
 * may still free after main has returned. Without memory for a heap the stand-in stays, and every request is refused.
 *
 * Constructors. The kernel's take one argument, ours two. The kernel's are called as ours: in every calling convention that the
 * library is for, the second argument is in a register that a function of one argument does not look at.
 *
 * Large objects. kvmalloc maps what the heap does not serve, with a page in front that says how much. kvfree tells by the address
 * that the object is not the heap's.
 *
 * No memory. The heap then asks what to answer (sy_heap.on_failure): shrinkers give something up, and __GFP_NOFAIL waits. The fast
 * paths know nothing of it.
 *
 * This file has no locks that a fork could find taken.
 */
#include <slabyard/kernel/linux/rcupdate.h>
#include <slabyard/kernel/linux/shrinker.h>
#include <slabyard/kmem.h>

#include "core/debug/debug.h"
#include "core/page_interface.h"
#include "forks.h"
#include "rcu.h"
#include "spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CACHE_FLAGS                                                                                                        \
	(SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU | SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT | SLAB_CACHE_DMA | SLAB_CACHE_DMA32 | \
	 SLAB_NO_MERGE)

static void *open_and_kmalloc(size_t size, gfp_t flags, struct sy_heap *);
static void open_and_kfree(void *object, struct sy_heap *);

static struct sy_heap unopened = { .kmalloc_this_slot = open_and_kmalloc, .kfree_this_slot = open_and_kfree };
static struct sy_heap *heap = &unopened;

/* The acquire pairs with the opener's release. */
static inline struct sy_heap *current(void)
{
	return __atomic_load_n(&heap, __ATOMIC_ACQUIRE);
}

static inline struct sy_cache *cache_of(struct kmem_cache *cache)
{
	return (struct sy_cache *)(void *)cache;
}

/* ---- Fast paths ------------------------------------------------------------------------------------------------- */

void *kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags)
{
	return cache_of(cache)->alloc_this_slot(cache_of(cache), flags);
}

void kmem_cache_free(struct kmem_cache *cache, void *object)
{
	cache_of(cache)->free_this_slot(cache_of(cache), object);
}

void *kmalloc(size_t size, gfp_t flags)
{
	struct sy_heap *now = current();

	if (sy__unlikely(!size))
		return ZERO_SIZE_PTR;
	return now->kmalloc_this_slot(size, flags, now);
}

void kfree(const void *object)
{
	struct sy_heap *now = current();

	if (sy__likely(!ZERO_OR_NULL_PTR(object)))
		now->kfree_this_slot((void *)(uintptr_t)object, now);
}

/* ---- No memory -------------------------------------------------------------------------------------------------- */

#define WAITS 10 /* each twice as long as the one before, from a millisecond: a second in all */

/* Shrinks the caches, and gives others time to free something. After a second the program ends: callers with __GFP_NOFAIL do not
 * check the result. */
static void wait_for_memory(unsigned waits)
{
	struct timespec moment = { .tv_nsec = 1000000L << waits };

	if (waits == WAITS) {
		fprintf(stderr, "slabyard: no memory for a request with __GFP_NOFAIL\n");
		abort();
	}
	sy_heap_shrink(current());
	nanosleep(&moment, NULL);
}

static bool must_not_fail(gfp_t flags)
{
	return flags & __GFP_NOFAIL && gfpflags_allow_blocking(flags);
}

static __thread bool retrying; /* in a retry; a request that is refused then fails */

/* Whether a retry may succeed: shrinkers have freed something, or the request must not fail and has waited. */
static bool may_try_again(gfp_t flags, unsigned *waits)
{
	if (gfpflags_allow_blocking(flags) && sy__shrink(flags))
		return true;
	if (must_not_fail(flags))
		wait_for_memory((*waits)++);
	return must_not_fail(flags);
}

static SY__COLD void *refused(size_t size, unsigned flags, struct sy_heap *now)
{
	void *object = NULL;
	unsigned waits = 0;

	if (retrying || size > KMALLOC_MAX_SIZE)
		return NULL;
	while (!object && may_try_again(flags, &waits)) {
		retrying = true;
		object = now->kmalloc_this_slot(size, flags, now);
		retrying = false;
	}
	return object;
}

static SY__COLD void *cache_refused(struct sy_cache *cache, unsigned flags)
{
	void *object = NULL;
	unsigned waits = 0;

	while (!retrying && !object && may_try_again(flags, &waits)) {
		retrying = true;
		object = cache->alloc_this_slot(cache, flags);
		retrying = false;
	}
	return object;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

static struct sy_heap *open_as_told(void)
{
	const char *spec = getenv("SLABYARD"), *error;
	const bool named = spec && *spec;
	struct sy_heap *opened = sy_heap_open(named ? spec : NULL, NULL, &error);
	static bool told; /* that there is no heap, which each request finds again */
	char shown[SY__SPEC_SHOWN];

	if (!opened && named && !told) {
		sy__spec_show(shown, sizeof(shown), spec);
		fprintf(stderr, "slabyard: SLABYARD=%s: %s; using %s\n", shown, error, sy_policies[0]->name);
	}
	if (!opened && named)
		opened = sy_heap_open(NULL, NULL, &error);
	if (!opened && !told)
		fprintf(stderr, "slabyard: there is no heap: %s\n", error);
	told = told || !opened;
	return opened;
}

/* Several threads may open a heap at once. The first one to be done wins; the others close theirs. */
struct sy_heap *sy_kmem_heap(void)
{
	struct sy_heap *first = current(), *opened;

	if (sy__likely(first != &unopened))
		return first;
	opened = open_as_told();
	if (!opened)
		return NULL;
	opened->on_failure = refused;
	opened->on_cache_failure = cache_refused;
	opened->kfree_frees_all = true;
	sy__rcu_hold_slabs(opened);
	sy__prepare_forks();
	if (!__atomic_compare_exchange_n(&heap, &first, opened, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		sy_heap_close(opened);
		return first;
	}
	return opened;
}

static SY__COLD void *open_and_kmalloc(size_t size, gfp_t flags, struct sy_heap *stand_in)
{
	struct sy_heap *opened = sy_kmem_heap();

	(void)stand_in;
	return opened ? opened->kmalloc_this_slot(size, flags, opened) : NULL;
}

/* Of an address that nobody can have got from here: the heap says so. */
static SY__COLD void open_and_kfree(void *object, struct sy_heap *stand_in)
{
	struct sy_heap *opened = sy_kmem_heap();

	(void)stand_in;
	if (opened)
		opened->kfree_this_slot(object, opened);
}

/* ---- Caches ----------------------------------------------------------------------------------------------------- */

typedef void (*constructor)(void *object, size_t size);

/* Each flag has a check of its own (enum sy_debug). */
static uint32_t checks_of(slab_flags_t flags)
{
	return (flags & SLAB_CONSISTENCY_CHECKS ? SY_DEBUG_FREES : 0u) | (flags & SLAB_RED_ZONE ? SY_DEBUG_RED_ZONES : 0u) |
	       (flags & SLAB_POISON ? SY_DEBUG_POISON : 0u) | (flags & SLAB_STORE_USER ? SY_DEBUG_AUDIT : 0u);
}

struct kmem_cache *(kmem_cache_create)(const char *name, unsigned size, unsigned align, slab_flags_t flags,
                                     void (*ctor)(void *object))
{
	struct sy_cache_config config = {
		.name = name,
		.size = size,
		.align = align,
		.flags = flags & CACHE_FLAGS,
		.debug = checks_of(flags),
		.constructor = (constructor)(void (*)(void))ctor,
	};
	struct sy_heap *now = sy_kmem_heap();
	struct sy_cache *cache = now ? sy_cache_create(now, &config) : NULL;

	if (!cache && flags & SLAB_PANIC) {
		fprintf(stderr, "slabyard: kmem_cache_create: cannot create cache %s of size %u, and SLAB_PANIC was asked for\n",
		        name ? name : "(null)", size);
		abort();
	}
	return (struct kmem_cache *)(void *)cache;
}

void kmem_cache_destroy(struct kmem_cache *cache)
{
	char name[SY_NAME_BYTES];
	uint64_t alive = 0;

	if (!cache)
		return;
	memcpy(name, cache_of(cache)->name, sizeof(name));
	if (cache_of(cache)->flags & SY_CACHE_TYPESAFE_BY_RCU && !sy__rcu_reads())
		sy__rcu_barrier(); /* the cache's pages go at once */
	if (sy_cache_destroy(cache_of(cache), &alive))
		return;
	if (!alive)
		fprintf(stderr, "slabyard: kmem_cache_destroy: cache %s stays, as it was called from inside a constructor\n", name);
	else
		fprintf(stderr, "slabyard: kmem_cache_destroy: cache %s still has %llu objects in use, so it stays\n", name,
		        (unsigned long long)alive);
}

int kmem_cache_shrink(struct kmem_cache *cache)
{
	sy_cache_shrink(cache_of(cache));
	return 0;
}

unsigned kmem_cache_size(struct kmem_cache *cache)
{
	return sy__debug_object_size(cache_of(cache));
}

int kmem_cache_alloc_bulk(struct kmem_cache *cache, gfp_t flags, size_t count, void **objects)
{
	unsigned got = count <= INT_MAX ? sy_alloc_bulk(cache_of(cache), flags, (unsigned)count, objects) : 0;

	while (got < count && must_not_fail(flags))
		objects[got++] = kmem_cache_alloc(cache, flags);
	if (got == count)
		return (int)got;
	sy_free_bulk(cache_of(cache), got, objects);
	return 0;
}

void kmem_cache_free_bulk(struct kmem_cache *cache, size_t count, void **objects)
{
	for (size_t i = 0; i < count; i++) {
		if (!cache)
			kfree(objects[i]);
		else if (objects[i])
			kmem_cache_free(cache, objects[i]);
	}
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------ */

size_t ksize(const void *object)
{
	struct sy_heap *opened = ZERO_OR_NULL_PTR(object) ? NULL : sy_kmem_heap();

	return opened ? sy_usable_size(opened, object) : 0;
}

/* Clears memory that nobody reads afterwards. The asm keeps the compiler from leaving that out. */
static void wipe(void *memory, size_t size)
{
	memset(memory, 0, size);
	__asm__ volatile("" : : "r"(memory) : "memory");
}

void kfree_sensitive(const void *object)
{
	if (ZERO_OR_NULL_PTR(object))
		return;
	wipe((void *)(uintptr_t)object, ksize(object));
	kfree(object);
}

void *krealloc(const void *object, size_t size, gfp_t flags)
{
	size_t room = ksize(object);
	void *moved;

	if (!size) {
		kfree(object);
		return ZERO_SIZE_PTR;
	}
	if (room >= size)
		return (void *)(uintptr_t)object;
	moved = kmalloc(size, flags);
	if (moved && room) {
		memcpy(moved, object, room);
		kfree(object);
	}
	return moved;
}

/* ---- Any size --------------------------------------------------------------------------------------------------- */

/* At the start of the page in front of a mapped object. */
struct mapping {
	size_t bytes; /* of the mapping, this page included */
	const void *object;
};

static void *map(size_t size)
{
	size_t page = (size_t)getpagesize(), bytes;
	struct mapping *mapping;

	if (size > SIZE_MAX / 2)
		return NULL;
	bytes = page + ((size + page - 1) & ~(page - 1));
	mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapping == MAP_FAILED)
		return NULL;
	mapping->bytes = bytes;
	mapping->object = (char *)mapping + page;
	return (char *)mapping + page;
}

static struct mapping *mapping_of(const void *object)
{
	return (struct mapping *)((uintptr_t)object - (size_t)getpagesize());
}

bool sy__is_mapped(const void *object)
{
	struct sy_heap *now = current();

	if (ZERO_OR_NULL_PTR(object) || (now != &unopened && sy__holds(now, object)))
		return false;
	return !now->debug || !sy__debug_knows(now, object);
}

/* Whether an object begins there that was mapped. The page in front of any other address may be missing, so the system is asked to read it,
 * by a call that it refuses. */
__attribute__((no_sanitize("address"))) static bool is_mapping(const void *object)
{
	return (uintptr_t)object % (size_t)getpagesize() == 0 &&
	       !(syscall(SYS_rt_sigprocmask, -1, mapping_of(object), NULL, sizeof(uint64_t)) && errno == EFAULT) &&
	       mapping_of(object)->object == object;
}

static size_t kvsize(const void *object)
{
	if (ZERO_OR_NULL_PTR(object) || !sy__is_mapped(object))
		return ksize(object);
	return mapping_of(object)->bytes - (size_t)getpagesize();
}

void *sy__vmalloc(size_t size, gfp_t flags)
{
	void *object = map(size);

	for (unsigned waits = 0; !object && must_not_fail(flags) && size <= SIZE_MAX / 2; waits++) {
		wait_for_memory(waits);
		object = map(size);
	}
	return object;
}

void *kvmalloc(size_t size, gfp_t flags)
{
	void *object = size <= KMALLOC_MAX_SIZE ? kmalloc(size, flags & ~__GFP_NOFAIL) : NULL;

	return object ? object : sy__vmalloc(size, flags);
}

void kvfree(const void *object)
{
	if (ZERO_OR_NULL_PTR(object))
		return;
	if (!sy__is_mapped(object))
		kfree(object);
	else if (is_mapping(object))
		munmap(mapping_of(object), mapping_of(object)->bytes);
	else
		sy_kmem_heap()->free_this_slot((void *)(uintptr_t)object, sy_kmem_heap()); /* which takes a foreign address for what it is */
}

void kvfree_sensitive(const void *object, size_t size)
{
	if (ZERO_OR_NULL_PTR(object))
		return;
	wipe((void *)(uintptr_t)object, size);
	kvfree(object);
}

void *(kvrealloc)(const void *object, size_t old_size, size_t new_size, gfp_t flags)
{
	void *moved;

	if (!ZERO_OR_NULL_PTR(object) && kvsize(object) >= new_size) {
		if (flags & __GFP_ZERO && new_size > old_size)
			memset((char *)(uintptr_t)object + old_size, 0, new_size - old_size);
		return (void *)(uintptr_t)object;
	}
	moved = kvmalloc(new_size, flags);
	if (moved && !ZERO_OR_NULL_PTR(object)) {
		memcpy(moved, object, old_size < new_size ? old_size : new_size);
		kvfree(object);
	}
	return moved;
}

void *sy__kvrealloc_known(const void *object, size_t size, gfp_t flags)
{
	size_t room = kvsize(object);

	if (!size) {
		kvfree(object);
		return ZERO_SIZE_PTR;
	}
	return kvrealloc(object, room, size, flags);
}

/* ---- Pages ------------------------------------------------------------------------------------------------------ */

struct page *sy__page_of_address(const void *address)
{
	return current() == &unopened || !sy__holds(current(), address)
	               ? NULL
	               : (struct page *)(void *)sy__page_of(current(), address);
}

void *sy__address_of_page(const struct page *page)
{
	return sy__page_address(current(), (const struct sy_page *)(const void *)page);
}

/* ---- Copies ----------------------------------------------------------------------------------------------------- */

void *kmemdup(const void *memory, size_t size, gfp_t flags)
{
	void *copy = memory ? kmalloc(size, flags) : NULL;

	return copy ? memcpy(copy, memory, size) : NULL;
}

void *kvmemdup(const void *memory, size_t size, gfp_t flags)
{
	void *copy = memory ? kvmalloc(size, flags) : NULL;

	return copy ? memcpy(copy, memory, size) : NULL;
}

char *kmemdup_nul(const char *memory, size_t size, gfp_t flags)
{
	char *copy = memory && size < SIZE_MAX ? kmalloc(size + 1, flags) : NULL;

	if (!copy)
		return NULL;
	memcpy(copy, memory, size);
	copy[size] = '\0';
	return copy;
}

char *kstrdup(const char *string, gfp_t flags)
{
	return string ? kmemdup_nul(string, strlen(string), flags) : NULL;
}

char *kstrndup(const char *string, size_t most, gfp_t flags)
{
	return string ? kmemdup_nul(string, strnlen(string, most), flags) : NULL;
}

char *kvasprintf(gfp_t flags, const char *format, va_list arguments)
{
	va_list again;
	char *text;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	text = length < 0 ? NULL : kmalloc((size_t)length + 1, flags);
	if (text)
		vsnprintf(text, (size_t)length + 1, format, arguments);
	return text;
}

const char *kvasprintf_const(gfp_t flags, const char *format, va_list arguments)
{
	return kvasprintf(flags, format, arguments);
}

char *kasprintf(gfp_t flags, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = kvasprintf(flags, format, arguments);
	va_end(arguments);
	return text;
}
