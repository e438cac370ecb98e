/*
 * The page interface: all that a policy knows of pages. core/pages/ implements it by a buddy allocator; a kernel port implements it
 * by the kernel's own.
 *
 * Every call names the heap, so that its counters are exact. Blocks are naturally aligned: 2^order pages start at a multiple of
 * their size from the base of their address space.
 */
#ifndef SY_PAGE_INTERFACE_H
#define SY_PAGE_INTERFACE_H

#include "types.h"

/* Takes 2^order pages for a slab (SY_USE_SLAB), a large allocation or metadata. flags: enum sy_flags. node: SY_ANY_NODE means the
 * node nearest to the slot. NULL: no memory. The first page's state is zero; heap, order and to_head of every page are set; the
 * memory is zero only with SY_ZERO. Called with no lock held, as reclaim may ask any heap to give memory back; with
 * SY_NO_RECLAIM, locks of levels 1 to 3 may be held. */
struct sy_page *sy__pages_take(struct sy_heap *, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use);

/* Takes a run of `count` pages (at least one), the start of a block of that order: blocks side by side, each of the largest power of two
 * that still fits. Each block has a head of its own, and is given back by itself. */
struct sy_page *sy__pages_take_run(struct sy_heap *, unsigned slot, unsigned order, unsigned count, unsigned flags, int node,
                                   enum sy_page_use use);

/* Flags that a request for pages inherits from the request for an object. */
#define SY__INHERITED_FLAGS (SY_HIGHATOMIC | SY_THISNODE | SY_NO_RECLAIM)

/* Flags for a cache's pages (enum sy_flags), from the cache's own (enum sy_cache_flags). */
static inline uint32_t sy__page_flags(uint32_t cache_flags)
{
	return (cache_flags & SY_CACHE_RECLAIMABLE ? SY_RECLAIMABLE : 0u) | (cache_flags & SY_CACHE_DMA ? SY_DMA : 0u) |
	       (cache_flags & SY_CACHE_DMA32 ? SY_DMA32 : 0u);
}

/* Gives back what sy__pages_take returned. Any slot. */
void sy__pages_give(struct sy_heap *, unsigned slot, struct sy_page *head);

/* Puts a heap onto the list of those that are asked for memory when it is short (by heap->hooks), and takes it off again. Once
 * sy__pages_detach returns, nobody is asking the heap any more. */
void sy__pages_attach(struct sy_pages *, struct sy_heap *);
void sy__pages_detach(struct sy_pages *, struct sy_heap *);

/* Returns memory that has been free for a while to its source (core/backend/decay.c). Costs a few loads if nothing is due. Locks of
 * levels 1 to 3 may be held. True: another call soon may return more. */
bool sy__pages_decay(struct sy_pages *);
void sy__pages_decay_idle(struct sy_pages *); /* the same for a thread that looks each half second, whatever the program does */

/* Outside of calls: the program has got this many pages from the system elsewhere, so free ones go back if there are many beside what
 * is held. And how many pages have memory. */
void sy__pages_offset_growth(struct sy_pages *, size_t count);
size_t sy__pages_backed(const struct sy_pages *);

/* Gives the memory of an unused page inside a slab back to its source, while the page stays the slab's; false: that is impossible.
 * And takes such a page into use again, with undefined contents. An emptied page may also be given back with its block. Locks of
 * levels 1 to 3 may be held. */
bool sy__page_empty(struct sy_heap *, struct sy_page *);
void sy__page_refill(struct sy_heap *, struct sy_page *);

/* Calls visit with the head page of every block that the heap holds (slabs, large allocations, metadata), in order of address, until
 * it returns false. visit may give that block back. For checks and for destroying heaps: the cost is that of all grown pages. */
void sy__pages_walk(struct sy_heap *, bool (*visit)(void *context, struct sy_page *head), void *context);

/* Head page of the heap's block that contains an arbitrary address; NULL: none does. For checks and walks, which follow links that a
 * program may have overwritten. */
struct sy_page *sy__pages_find(const struct sy_heap *, const void *address);

/* Whether some heap has had the page of an arbitrary address. */
bool sy__pages_were_used(const struct sy_heap *, const void *address);

/* Moves the end of the reserved range of a heap's own pages: to this many bytes, or to the end of what is in use or has memory, if that
 * is more. The range may extend again, up to its first length or to addresses that the program has taken. All slots of the heap
 * are stopped (sy__slots_stop). False: nothing changed; the pages are not the heap's own, or the addresses are taken. */
bool sy__reservation_resize(struct sy_heap *, size_t bytes);

/* Makes free blocks at the end of the used range reserved space again, so that they do not count as the program's data. All slots of
 * the heap are stopped; after sy_heap_trim. False: there are none. */
bool sy__reservation_withdraw(struct sy_heap *);

/* Bytes of reserved addresses, with those of descriptors; and those of them that are in front of the first page, which is aligned. */
size_t sy__reservation_bytes(const struct sy_heap *);
size_t sy__reservation_front(const struct sy_heap *);

/* Number of memory nodes that pages may come from; sy__page_node is below this. */
unsigned sy__pages_nodes(const struct sy_pages *);

/*
 * Descriptors, and conversions between them and addresses. The owner of the pages defines them: core/pages/, or a kernel, which has
 * its own. A build picks another header with -DSY_PAGE_DESCRIPTOR='"…"'. The header has
 *
 *   struct sy_page                 with a member `state`, SY_SLAB_STATE_BYTES bytes aligned to 8; the pages of a block have
 *                                  consecutive descriptors
 *   sy__page_order(page)           order of the block that this page heads
 *   sy__page_node(page)            memory node of this page, whether or not it heads its block
 *   sy__page_use(page)             what the block is used for (enum sy_page_use)
 *   sy__page_is_slab(page)         whether it is used for that
 *   sy__page_is_large(page)
 *   sy__page_is_metadata(page)
 *   sy__page_heap(page)            whose block this page is in
 *   sy__page_set_heap(page, heap)
 *   sy__page_bytes(page)           bytes asked for in the large allocation that this page heads
 *   sy__page_set_bytes(page, n)
 *   sy__page_head(page)            first page of its slab or large allocation
 *   struct sy_pages_base           the beginning of struct sy_pages
 *   sy__page_address(heap, page)   address of the page
 *   sy__page_of(heap, address)     descriptor of the page that holds the address, which must be one of the heap's
 *   sy__page_distance(heap, head, address)  bytes from the start of the block with this head, which the address is in
 *   sy__page_near(memory, table, address)   the same, from copies of the members of struct sy_pages_base
 *   sy__page_to_number(table, page)         a page's number in 32 bits, from 1 on, for links that must be short
 *   sy__page_of_number(table, number)       and back
 *   sy__known_pages(heap), sy__holds_near(memory, known, address)   the same as the next, from a copy of the first
 *   sy__holds(heap, address)       whether the address may be one of the heap's; then its page has a descriptor
 */
#ifndef SY_PAGE_DESCRIPTOR
#define SY_PAGE_DESCRIPTOR "pages/descriptor.h"
#endif
#include SY_PAGE_DESCRIPTOR

/* Descriptor of the first page of the slab or large allocation that holds the address. */
static inline struct sy_page *sy__head_of(const struct sy_heap *heap, const void *address)
{
	return sy__page_head(sy__page_of(heap, address));
}

#endif
