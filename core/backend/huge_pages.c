/*
 * Huge pages for heaps of threads that grow.
 *
 * Why. A growing program pays more for the faults on its pages, and for their end, than for all other work of allocation; and
 * every page takes a TLB entry. So once a heap of threads has huge_from bytes, it asks the system to back new maximal blocks by
 * huge pages, of 2 MiB say.
 *
 * When not. Huge pages pay only in programs that use what they allocate. A program that writes one page of each buffer would get
 * memory for all of it. Nothing tells how much of a huge page is in use, but the system tells it of small pages. So one block with
 * small pages serves as a sample. While seven eighths of the sample have memory, new blocks get huge pages. Otherwise the
 * new block gets small ones and becomes the next sample; without this rule, objects a little larger than half of their power
 * of two would get twice their memory. The heap also takes a new sample each time that it has doubled.
 *
 * Giving back. When some of a huge block goes back to the system, core/pages/count.c asks for small pages there, or the system
 * would soon make the block whole again. A block that went back as a whole and is used again asks for huge pages anew.
 */
#include "huge_pages.h"

static bool is_dense(const struct sy_pages *pages, uint64_t start)
{
	size_t bytes = (size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT;

	return sy__source_tells() && sy__source_has(pages->base.memory + ((size_t)start << SY_PAGE_SHIFT), bytes, bytes / 8 * 7);
}

uint8_t sy__huge_pages_prefer(struct sy_pages *pages, uint64_t start)
{
	struct sy__backend *backend = sy__backend_of(pages);
	size_t committed = sy__read(&pages->committed_pages);

	if (committed < backend->huge_from || committed >= 2 * backend->sample_from || !is_dense(pages, backend->sample)) {
		backend->sample = start;
		backend->sample_from = committed;
		return 0;
	}
	return sy__source_prefer_huge(pages->base.memory + ((size_t)start << SY_PAGE_SHIFT), (size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT)
	               ? SY__HUGE
	               : 0;
}
