/*
 * Large pages for heaps of threads that grow.
 *
 * A growing program pays more for the fault and the end of each of its pages than for all else that allocation
 * takes, and each takes an entry of the processor's address cache. So a heap of threads that has HUGE_FROM bytes asks the
 * system to back the maximal blocks by which it grows from then on by large pages, of 2 MiB say. That is for programs that use
 * what they take: of one that takes buffers and writes a page of each, the system would back all. Nothing tells how much of a
 * large page is used, so a block that has small ones is the witness: the last one before, and a new one each time that the heap
 * has doubled. Where less than seven eighths of it have memory the heap goes on with small pages, and each block is the witness
 * for the next: objects that are a little more than half of the power of two that they take would be backed twice. A block of
 * which something goes back to the system is not to be backed so any longer (count.c), or the system would make it whole again
 * by and by; when all of it has gone and it is used again, that is asked for anew.
 */
#include "huge_pages.h"

static bool is_dense(const struct sy_pages *pages, uint64_t start)
{
	size_t bytes = (size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT;

	return sy__source_has(pages->base.memory + ((size_t)start << SY_PAGE_SHIFT), bytes, bytes / 8 * 7);
}

uint8_t sy__huge_pages_prefer(struct sy_pages *pages, uint64_t start)
{
	size_t committed = pages->committed_pages;

	if (committed < pages->huge_from || committed >= 2 * pages->witness_from || !is_dense(pages, pages->witness)) {
		pages->witness = start;
		pages->witness_from = committed;
		return 0;
	}
	sy__source_prefer_huge(pages->base.memory + ((size_t)start << SY_PAGE_SHIFT), (size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT);
	return SY__HUGE;
}
