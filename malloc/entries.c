/*
 * malloc and its family on a heap of slabyard: the functions that programs call.
 *
 * Where an object comes from:
 *
 *   the heap       process.c makes one heap for the program at its first request, of the policy that the environment names.
 *                  Requests up to the policy's largest class are objects of slabs, above them runs of whole pages.
 *   a mapping      mapping.c: requests that are larger than the largest block of pages (4 MiB), are aligned to more than the heap can
 *                  serve, or find no memory there; large ones that are hardly touched (mmap_threshold.c); and small ones of
 *                  programs whose memory is locked, when the limit has room for pages but not for blocks.
 *
 * free tells the two apart by the address.
 *
 * The fast path. malloc and free each jump through a pointer: at first to a function that makes the heap, then to the heap's own
 * functions. So no call asks whether the library is ready. malloc and free contain the fast paths of the default policy (fast.c).
 * All other functions of the family call these two: their cost is in the memory that they touch. Only realloc and malloc_usable_size find
 * the size of an object inline, as free finds its slab.
 *
 * Promises, as glibc's: objects are aligned to 16 bytes, those of up to 8 bytes, which can't need more, to 8; a request of 0 bytes gets an
 * object of its own; without memory the result is NULL and errno ENOMEM, also for sizes above PTRDIFF_MAX and products that overflow;
 * realloc to 0 bytes frees, and returns NULL; free leaves errno alone.
 *
 * realloc leaves an object where it is if its room is enough and not far too much: at most twice the request, or, from a page on,
 * at most a third above it. It also does so where there is no memory for a smaller object. An object that grows beyond the
 * largest class gets an eighth more than was asked for, so that growing little by little does not copy it for each page. An
 * object that grows to MOVED_FROM bytes becomes a mapping: it is likely to go on growing, and a mapping grows without copying.
 *
 * Before main, in static initialisers and constructors: nothing here needs to be started. After exit and in destructors:
 * nothing is ever taken down. Like every malloc, this one is not for signal handlers.
 */
#define _GNU_SOURCE
#include "debugging.h"
#include "mapping_cache.h"
#include "mmap_threshold.h"
#include "parts.h"
#include "system.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "core/kmalloc.h"
#include "core/page_interface.h"
#include "core/policies/default.h"
#include "library/debug/anchor.h"

#define EXPORT __attribute__((visibility("default")))
#define MOVED_FROM ((size_t)1 << 19)    /* bytes: objects that grow to this become mappings */
#define MOST_ALIGNED ((size_t)1 << 20)  /* bytes: objects with a larger alignment are mappings */
#define ALWAYS_HEAP ((size_t)1 << 15)   /* bytes: smaller requests are no mappings while the heap has room */
#define LEAST_MAPPED (sizeof(void *) > 4 ? ALWAYS_HEAP : SY_PAGE_SIZE) /* bytes: nor where it has none; 32-bit heaps end early */
#define MOST_TRIES 3u                    /* of a request, as long as memory is found for it */
#define LEFT_OVER ((size_t)64 << 10)    /* bytes of locked memory that are left to small objects */
#define ZEROED_BY_PAGES ((size_t)32768) /* bytes: from here on calloc does not clear pages that are zero already */

static void *first_malloc(size_t size, struct sy_heap *none);
static void first_free(void *object, struct sy_heap *none);

struct service sy__service = { .malloc = first_malloc, .other = first_malloc, .free = first_free };

/* ---- Beyond the heap ---------------------------------------------------------------------------------------------- */

static SY__COLD void *no_memory(void)
{
	errno = ENOMEM;
	return NULL;
}

/* A mapping for an object that the heap's blocks have no room for. Where memory is locked, under a limit, small objects may be
 * mappings, and larger ones leave some of the limit to them: programs that find no more memory still have something to say. */
static void *mapping_for(size_t size)
{
	void *left_over, *object;

	if (!sy__source_locks())
		return size >= LEAST_MAPPED ? sy__mapping_create(size, ALIGNMENT) : NULL;
	if (size <= SY_PAGE_SIZE)
		return sy__mapping_create(size, ALIGNMENT);
	left_over = sy__system_map(NULL, LEFT_OVER, PROT_NONE, 0);
	if (!left_over)
		return NULL;
	object = sy__mapping_create(size, ALIGNMENT);
	sy__system_unmap(left_over, LEFT_OVER);
	return object;
}

static void *plain_mapping(size_t size, unsigned flags)
{
	void *object = NULL;

	if (size >= ALWAYS_HEAP)
		object = flags & SY_ZERO ? sy__mapping_reuse_zeroed(size) : sy__mapping_reuse(size);
	return object ? object : mapping_for(size);
}

/* For heaps with checks. */
static void *checked_mapping(struct sy_heap *heap, size_t align, size_t size, unsigned flags)
{
	return size + align >= ALWAYS_HEAP ? sy__debugging_map(heap, align, size, flags) : NULL;
}

/* sy_heap.on_failure: a request that the heap could not serve. What is gained for it may be lost again to a mapping that is tried for it
 * next, so there are few tries. */
static void *refused(size_t size, unsigned flags, struct sy_heap *heap)
{
	static __thread unsigned tries __attribute__((tls_model("initial-exec")));
	void *object = heap->debug ? checked_mapping(heap, ALIGNMENT, size, flags) : plain_mapping(size, flags);

	if (!object && tries < MOST_TRIES &&
	    (sy__mapping_cache_end() + sy__mmap_threshold_end(heap) || sy__process_extend_reservation())) {
		tries++;
		object = sy_malloc(heap, size, flags);
		tries--;
	}
	return object ? object : no_memory();
}

/* The mapping cache gives back as much memory as the heap has got from the system since the last look: a program that turns to other sizes
 * needs one or the other. Relaxed, as figures order nothing. */
static void offset_growth(struct sy_heap *heap)
{
	static size_t seen;
	size_t pages = sy__pages_backed(heap->pages), before = __atomic_exchange_n(&seen, pages, __ATOMIC_RELAXED);

	if (pages > before)
		sy__mapping_cache_offset_growth((pages - before) << SY_PAGE_SHIFT);
}

/* sy_heap.on_slow_call. */
static void passes(struct sy_heap *heap)
{
	offset_growth(heap);
	sy__mapping_cache_age();
	sy__sample_notice();
}

static void foreign(void *object, struct sy_heap *heap)
{
	(void)heap;
	if (object && !sy__sample_free(object))
		sy__mapping_end(object);
}

/* ---- The first call ----------------------------------------------------------------------------------------------- */

static struct service ready; /* the heap's functions; set before sy__service.heap is */

/* If there was no memory for a heap until now, there may be other threads already. They may read sy__service in the middle of a change, so
 * first_malloc and first_free then stay in it for good. These acquire sy__service.heap, which is stored with release: `ready` is complete
 * by then. A single thread needs no order, because later threads see everything it did before they began. */
void sy__serve(struct sy_heap *heap, bool alone)
{
	const char *file = sy__setting("SLABYARD_STATS");

	ready = (struct service){ .heap = heap, .malloc = heap->malloc_this_slot, .free = heap->free_this_slot };
	heap->on_failure = refused;
	heap->on_foreign_free = foreign;
	heap->on_slow_call = passes;
	if (!heap->debug) { /* its notes of objects would keep leaks from being found */
		heap->on_large_alloc = sy__mmap_threshold_watch;
		heap->on_large_free = sy__mmap_threshold_learn;
	}
	if (file)
		sy__report_start(&ready, file);
	if (!heap->debug) /* where all objects are checked */
		sy__sample_start(&ready);
	sy__fast_path_set(&ready);
	sy__debugging_start(heap);
	sy__anchor.mappings = sy__mapping_figures();
	sy__anchor.sample_rate = &slabyard_sample_rate;
	sy__background_start(heap);
	__atomic_store_n(&sy__service.heap, heap, __ATOMIC_RELEASE);
	if (alone)
		sy__service = ready;
}

void sy__serve_malloc(void *(*function)(size_t size, struct sy_heap *))
{
	struct service *serves = sy__service.malloc == first_malloc ? &ready : &sy__service;

	__atomic_store_n(&serves->malloc, function, __ATOMIC_RELEASE);
	sy__fast_path_set(serves);
}

static bool start(void)
{
	return __atomic_load_n(&sy__service.heap, __ATOMIC_ACQUIRE) || sy__process_heap();
}

/* While there is no heap: a mapping, if this thread is just making the heap. */
static SY__COLD void *early(size_t align, size_t size)
{
	void *object = sy__process_is_making() ? sy__mapping_create(size, align) : NULL;

	return object ? object : no_memory();
}

static void *first_malloc(size_t size, struct sy_heap *none)
{
	(void)none;
	return start() ? ready.malloc(size, ready.heap) : early(ALIGNMENT, size);
}

static void first_free(void *object, struct sy_heap *none)
{
	(void)none;
	if (object && start())
		ready.free(object, ready.heap);
	else if (object)
		sy__mapping_end(object);
}

/* Runs before the program can have threads. */
__attribute__((constructor(101))) static void start_early(void)
{
	start();
}

/* ---- Zeroed memory ------------------------------------------------------------------------------------------------ */

static SY__COLD void *calloc_large(size_t size)
{
	void *object = start() ? sy_malloc(sy__service.heap, size, SY_ZERO) : early(ALIGNMENT, size);

	report_add(object);
	return object;
}

EXPORT void *calloc(size_t count, size_t size)
{
	size_t bytes;
	void *object;

	if (sy__unlikely(__builtin_mul_overflow(count, size, &bytes)))
		return no_memory();
	if (sy__unlikely(bytes >= ZEROED_BY_PAGES))
		return calloc_large(bytes);
	object = sy__allocate(bytes);
	return sy__likely(object) ? memset(object, 0, bytes) : NULL;
}

/* ---- Resizing ----------------------------------------------------------------------------------------------------- */

size_t sy__usable_bytes(const void *object)
{
	if (sy__service.heap->debug || sy__holds(sy__service.heap, object))
		return sy_usable_size(sy__service.heap, object);
	return sy__sample_has(object) ? sy_usable_size(sy__sampled, object) : sy__mapping_usable(object);
}

/* The object's room, if malloc has the policy's fast path; 0: it takes a call to find out. */
static inline size_t room_at_hand(const void *object)
{
	struct sy_heap *heap = sy__service.fast;

	return sy__likely(heap) ? sy__default_room(object, heap) : 0;
}

static inline bool stays(size_t room, size_t size)
{
	return size <= room && room - size <= room >> (room < SY_PAGE_SIZE ? 1 : 2);
}

static void *grown(size_t size)
{
	void *object = size < PTRDIFF_MAX / 2 ? sy__mapping_reuse_to_grow(size + size / 8) : NULL;

	if (!object && size < PTRDIFF_MAX / 2)
		object = sy__mapping_create(size + size / 8, ALIGNMENT);
	report_add(object);
	return object ? object : sy__allocate(size);
}

static void *room_for(size_t size, bool grows)
{
	if (!grows || size <= SY__KMALLOC_LARGEST || sy__service.heap->debug) /* where every object has the size that was asked for */
		return sy__allocate(size);
	return size < MOVED_FROM ? sy__allocate(size + size / 8) : grown(size);
}

static SY__OUT_OF_LINE void *move(void *object, size_t room, size_t size)
{
	void *moved = room_for(size, size > room);

	if (!moved)
		return size <= room ? object : NULL;
	memcpy(moved, object, size < room ? size : room);
	sy__release(object);
	return moved;
}

static void *resize_mapping(void *object, size_t size)
{
	void *resized;

	report_remove(object);
	resized = sy__mapping_resize(object, size);
	report_add(resized ? resized : object);
	return resized;
}

static SY__OUT_OF_LINE void *resize_any(void *object, size_t size)
{
	size_t room;
	void *resized;

	if (!object)
		return sy__allocate(size);
	if (!size) {
		sy__release(object);
		return NULL;
	}
	room = sy__usable_bytes(object);
	if (sy__service.heap->debug || sy__sample_has(object))
		return move(object, room, size);
	if (stays(room, size))
		return object;
	if (sy__holds(sy__service.heap, object) || size < MOVED_FROM || !sy__mapping_resizes(object))
		return move(object, room, size);
	resized = resize_mapping(object, size);
	return resized ? resized : move(object, sy__usable_bytes(object), size);
}

EXPORT void *realloc(void *object, size_t size)
{
	size_t room = room_at_hand(object);

	if (sy__unlikely(!room || !size))
		return resize_any(object, size);
	return stays(room, size) ? object : move(object, room, size);
}

EXPORT void *reallocarray(void *object, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		return no_memory();
	return realloc(object, bytes);
}

/* ---- Alignment ---------------------------------------------------------------------------------------------------- */

static bool is_power(size_t value)
{
	return value && !(value & (value - 1));
}

/* The size to request for an aligned object. Every policy aligns powers of two to their size, up to a page, and a run of pages to
 * the block that it is cut from. */
static size_t aligned_request(size_t align, size_t size)
{
	if (size > SY__KMALLOC_LARGEST && align <= SY_PAGE_SIZE)
		return size;
	if (align <= SY_PAGE_SIZE)
		return sy__kmalloc_aligned_size(sy__service.heap, size, align);
	return size > align ? size : align;
}

static SY__COLD void *aligned_debugged(size_t align, size_t size)
{
	struct sy_heap *heap = sy__service.heap;
	void *object = sy__debug_aligned(heap, align, size, 0);

	if (!object)
		object = checked_mapping(heap, align, size, 0);
	report_add(object);
	return object ? object : no_memory();
}

void *sy__allocate_aligned(size_t align, size_t size)
{
	void *object = NULL;

	if (align <= ALIGNMENT && !(sy__service.heap && sy__service.heap->debug)) /* which counts what was asked for */
		return sy__allocate(size > align ? size : align);
	if (size > PTRDIFF_MAX)
		return no_memory();
	if (!start())
		return early(align, size);
	if (sy__service.heap->debug)
		return aligned_debugged(align > ALIGNMENT ? align : ALIGNMENT, size);
	if (align <= SY_PAGE_SIZE && size <= SY_PAGE_SIZE && sy__kmalloc_aligns(sy__service.heap))
		return sy__allocate(size ? (size + align - 1) & ~(align - 1) : align);
	object = align <= MOST_ALIGNED ? sy_malloc(sy__service.heap, aligned_request(align, size), 0) : NULL;
	if ((uintptr_t)object & (align - 1)) {
		sy__service.heap->free_this_slot(object, sy__service.heap);
		object = NULL;
	}
	if (!object && (align > SY_PAGE_SIZE || size >= ALWAYS_HEAP))
		object = sy__mapping_create(size, align);
	report_add(object);
	return object ? object : no_memory();
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	if (is_power(align))
		return sy__allocate_aligned(align, size);
	errno = EINVAL;
	return NULL;
}

/* Rounds an alignment up to a power of two, as memalign has always done. */
EXPORT void *memalign(size_t align, size_t size)
{
	size_t power = ALIGNMENT;

	if (align > SIZE_MAX / 2 + 1) {
		errno = EINVAL;
		return NULL;
	}
	while (power < align)
		power *= 2;
	return sy__allocate_aligned(power, size);
}

EXPORT int posix_memalign(void **result, size_t align, size_t size)
{
	int error = errno;
	void *object;

	if (!is_power(align) || align % sizeof(void *))
		return EINVAL;
	object = sy__allocate_aligned(align, size);
	errno = error;
	if (!object)
		return ENOMEM;
	*result = object;
	return 0;
}

EXPORT void *valloc(size_t size)
{
	return sy__allocate_aligned(sy__system_page_bytes(), size);
}

EXPORT void *pvalloc(size_t size)
{
	size_t page = sy__system_page_bytes();

	return size > PTRDIFF_MAX ? no_memory() : sy__allocate_aligned(page, (size + page - 1) & ~(page - 1));
}

/* ---- The rest ----------------------------------------------------------------------------------------------------- */

EXPORT size_t malloc_usable_size(void *object)
{
	size_t room = room_at_hand(object);

	return sy__likely(room) || !object ? room : sy__usable_bytes(object);
}

/* C23: the caller passes the size that it asked for, which only debugging looks at. */
EXPORT void free_sized(void *object, size_t size)
{
	if (sy__likely(sy__service.fast) || sy__debugging_expects(object, size, SY__BY_KMALLOC))
		sy__release(object);
}

EXPORT void free_aligned_sized(void *object, size_t align, size_t size)
{
	(void)align;
	free_sized(object, size);
}

EXPORT void cfree(void *object)
{
	sy__release(object);
}
