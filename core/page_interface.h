/*
 * The page interface: all that a policy knows of pages. core/pages/ implements it with a buddy allocator; a kernel port
 * implements it with the kernel's own.
 *
 * Every call goes through the heap, so that its counters are exact. Blocks are naturally aligned: 2^order pages start
 * at a multiple of their size from the base of the address space that they come from.
 */
#ifndef SY_PAGE_INTERFACE_H
#define SY_PAGE_INTERFACE_H

#include "types.h"

/* Takes 2^order pages for a slab (SY_USE_SLAB), a large allocation or metadata. flags: enum sy_flags; node:
 * SY_ANY_NODE for the one nearest to the slot. NULL when there is no memory: never an abort. The page's state is zero,
 * heap, order and to_head of every page of the block are set; the memory itself is zero only with SY_ZERO. Called with no
 * lock held, as reclaim may ask this or any other heap to give memory back; with SY_NO_RECLAIM locks above level 4 of the
 * lock order may be held. */
struct sy_page *sy__pages_take(struct sy_heap *, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use);

/* The same for the first `count` pages (at least one) of a block of that order, which start at a multiple of its size: a row
 * of blocks, each the largest power of two that still fits, with a head of its own. Each is given back by itself. */
struct sy_page *sy__pages_take_run(struct sy_heap *, unsigned slot, unsigned order, unsigned count, unsigned flags, int node,
                                   enum sy_page_use use);

/* Flags of a request for an object that what is taken to serve it inherits. */
#define SY__INHERITED_FLAGS (SY_HIGHATOMIC | SY_THISNODE | SY_NO_RECLAIM)

/* What a cache's flags (enum sy_cache_flags) demand of its pages (enum sy_flags). */
static inline uint32_t sy__page_flags(uint32_t cache_flags)
{
	return (cache_flags & SY_CACHE_RECLAIMABLE ? SY_RECLAIMABLE : 0u) | (cache_flags & SY_CACHE_DMA ? SY_DMA : 0u) |
	       (cache_flags & SY_CACHE_DMA32 ? SY_DMA32 : 0u);
}

/* Gives back what sy__pages_take returned. Any slot. */
void sy__pages_give(struct sy_heap *, unsigned slot, struct sy_page *head);

/* Puts a heap into the list of those that are asked for memory when it becomes short (through heap->link, by heap->hooks), and takes it
 * out again. A detached heap is not being asked any more when the call returns. */
void sy__pages_attach(struct sy_pages *, struct sy_heap *);
void sy__pages_detach(struct sy_pages *, struct sy_heap *);

/* Gives memory that has been free for a while back to where it came from. Any lock above level 4 may be held. Some loads
 * when there is nothing to do, or the implementation never does. True: more would go if somebody came by again in a moment. */
bool sy__pages_decay(struct sy_pages *);

/* A page of a slab without anything in it that is needed: gives its memory back to where it came from, though the page stays the
 * slab's (false: it can't be given back); and takes such a page into use again, with anything in it, if it was given back. With its block, it
 * may be given back as it is. Any lock above level 4 may be held. */
bool sy__page_empty(struct sy_heap *, struct sy_page *);
void sy__page_refill(struct sy_heap *, struct sy_page *);

/* Calls visit with the head page of every block that the heap holds (slabs, large allocations, metadata; sy__page_heap tells),
 * in order of address, until it returns false. visit may give the block back that it is called with. For checks and for
 * destroying heaps: visits every grown page. */
void sy__pages_walk(struct sy_heap *, bool (*visit)(void *context, struct sy_page *head), void *context);

/* Head page of the block of the heap's that an address lies in, whatever address that is; NULL: in none. For checks and walks, which
 * go by links that a program may have written over. */
struct sy_page *sy__pages_find(const struct sy_heap *, const void *address);

/* Has the addresses that are reserved for a heap's own pages end after so many bytes, or after what is in use or has memory, if
 * that is more; or reach further again, up to what they were at first or to where somebody else has addresses by now. Of a heap
 * that is alone (sy__alone_begin). False: nothing has changed, as these are not a heap's own, or it can't. */
bool sy__reservation_resize(struct sy_heap *, size_t bytes);

/* Has free blocks at the end of what a heap's own pages have used be as if they had never been, so that neither their memory
 * nor what it took to use it counts as the program's. Of a heap that is alone, after sy_heap_trim; false: there are none. */
bool sy__reservation_withdraw(struct sy_heap *);

/* Bytes of addresses that these pages have, with those of their descriptors. */
size_t sy__reservation_bytes(const struct sy_heap *);

/* Memory nodes that pages may come from: sy__page_node is below this. */
unsigned sy__pages_nodes(const struct sy_pages *);

/*
 * Descriptors, and what leads from one to its page's address and back. Whose pages they are defines them: core/pages/, or a
 * kernel, whose own descriptors they then are; a build picks another header with -DSY_PAGE_DESCRIPTOR='"…"'. It has
 *
 *   struct sy_page                 with a member `state`, SY_SLAB_STATE_BYTES bytes aligned to 8; element i of an array, for
 *                                  the pages of one block
 *   sy__page_order(page)           order of the block that this page heads
 *   sy__page_node(page)            memory node of this page, whether or not it heads its block
 *   sy__page_use(page)             what the block is used for (enum sy_page_use)
 *   sy__page_is_slab(page)         the same, for one use each
 *   sy__page_is_large(page)
 *   sy__page_is_metadata(page)
 *   sy__page_heap(page)            whose block this page is in
 *   sy__page_set_heap(page, heap)
 *   sy__page_bytes(page)           bytes asked for in the large allocation that this page heads
 *   sy__page_set_bytes(page, n)
 *   sy__page_head(page)            first page of its slab or large allocation
 *   struct sy_pages_base           what struct sy_pages begins with
 *   sy__page_address(heap, page)   address of the page
 *   sy__page_of(heap, address)     descriptor of the page that holds the address, which must be one of the heap's
 *   sy__page_near(memory, table, address)   the same, by what struct sy_pages_base says, if it is at hand
 *   sy__page_to_number(table, page)         a page's number in 32 bits, from 1 on, where two pointers are too much
 *   sy__page_of_number(table, number)       and back
 *   sy__holds(heap, address)       whether the address may be one of the heap's
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
