/*
 * The memory source of platform/user.h.
 *
 * Reserved space is a private anonymous mapping without access. With MAP_NORESERVE the operating system charges nothing for it, and
 * a stray access faults instead of growing memory. Committing makes it accessible, which touches nothing either: pages appear when
 * they are written. Withdrawing maps it anew: only so does the system forget what it charged.
 *
 * Discarding is MADV_DONTNEED, after which the pages read zero again. The operating system's pages may be larger than ours (arm64
 * has 16 and 64 KiB pages), hence a discarded range is rounded inwards: what shares a page with something in use stays. So does
 * locked memory before Linux 5.18; from then on it goes, and is locked again when it is touched. What stays is cleared, as callers
 * expect zeroes. getpagesize tells the page size: sysconf would read a table that brings 64 KiB of the C library into the program's
 * memory.
 *
 * Core dumps leave out what is only reserved (MADV_DONTDUMP). Debuggers would write all of it.
 *
 * Huge pages. Where the system gives huge pages to everybody, a range of which little is touched would get memory for all of it. So
 * reserved space has small pages until others are asked for.
 *
 * Locked memory. A program may ask that all its future memory be locked (mlockall with MCL_FUTURE). That is then done to what is
 * committed, and undone to what is reserved: the system would count all of that toward the limit to locked memory.
 *
 * Sandboxes. A system-call filter may end a program for calls that it does not expect, and nobody expects mincore of a malloc. So the
 * system is not asked what is in memory once the program has begun to shut itself in (sy__system_shut_in), nor while it has one
 * thread and a filter from its parent. Nor does it expect questions for limits: they have the values then that they had before, or that
 * the program has set since. A filter that refuses such calls does no harm.
 *
 * A filter may also refuse what changes memory. Where mprotect or madvise fails as only a filter has it, the memory is mapped anew
 * instead. That loses what is in it, and callers may commit what is in use: two of them at once, or beside each other on one page of the
 * system's. So under a lock, futex tells what is accessible already: it reads a word for a sleep that it is to refuse.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "../types.h"
#include "../platform.h"
#include "system_call.h"

#include <sys/resource.h>

#ifdef MAP_FIXED_NOREPLACE
#define FIXED_NOREPLACE MAP_FIXED_NOREPLACE
#else
#define FIXED_NOREPLACE 0x100000 /* linux/mman.h, which old systems lack */
#endif
#define LOCK_ON_FAULT 1 /* MLOCK_ONFAULT */
#define DONTNEED_LOCKED 24 /* MADV_DONTNEED_LOCKED, of Linux 5.18 */
#define FUTEX_WAIT_PRIVATE 128 /* linux/futex.h, which C libraries need not come with */

static enum sy__locks locks;
static bool only_small;
static bool shut_in;
static uint64_t limits[2]; /* to addresses and data, once shut in */
static sy__lock_t remapping = SY__LOCK_INIT;

void sy__source_lock_future(enum sy__locks wanted)
{
	locks = wanted;
}

bool sy__source_locks(void)
{
	return locks != SY__LOCKS_NONE;
}

void sy__source_only_small(void)
{
	only_small = true;
}

/* ---- Addresses ---------------------------------------------------------------------------------------------------- */

static void set_up_reserved(void *p, size_t bytes)
{
#ifdef MADV_DONTDUMP
	sy__system_advise(p, bytes, MADV_DONTDUMP);
#endif
	sy__source_prefer_small(p, bytes);
	if (locks && !sy__system_is_shut_in())
		sy__system(SYS_munlock, sy__system_word(p), (long)bytes, 0, 0);
}

void *sy__source_reserve(size_t bytes)
{
	void *p = sy__system_map(NULL, bytes, PROT_NONE, MAP_NORESERVE);

	if (p)
		set_up_reserved(p, bytes);
	return p;
}

/* Kernels before 4.17 ignore the flag, and may map elsewhere. */
bool sy__source_reserve_at(void *p, size_t bytes)
{
	void *found = sy__system_map(p, bytes, PROT_NONE, MAP_NORESERVE | FIXED_NOREPLACE);

	if (found == p)
		set_up_reserved(p, bytes);
	else if (found)
		sy__system_unmap(found, bytes);
	return found == p;
}

void sy__source_release(void *p, size_t bytes)
{
	sy__system_unmap(p, bytes);
}

uint64_t sy__system_limit(int resource)
{
	uint64_t limit[2] = { UINT64_MAX, UINT64_MAX };

	if (sy__system_is_shut_in())
		return __atomic_load_n(&limits[resource == RLIMIT_DATA], __ATOMIC_RELAXED);
	return sy__system(SYS_prlimit64, 0, resource, 0, sy__system_word(limit)) == 0 ? limit[0] : UINT64_MAX;
}

void sy__system_limited(int resource, uint64_t limit)
{
	if (resource == RLIMIT_AS || resource == RLIMIT_DATA)
		__atomic_store_n(&limits[resource == RLIMIT_DATA], limit, __ATOMIC_RELAXED);
}

bool sy__source_allows(size_t bytes)
{
	return bytes <= sy__system_limit(RLIMIT_AS);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------- */

static bool lock_pages(void *p, size_t bytes)
{
	bool locked = true;

	if (sy__system_is_shut_in())
		return true;
	if (locks == SY__LOCKS_TOUCHED)
#ifdef SYS_mlock2
		locked = sy__system(SYS_mlock2, sy__system_word(p), (long)bytes, LOCK_ON_FAULT, 0) == 0;
	else
#endif
		if (locks)
		locked = sy__system(SYS_mlock, sy__system_word(p), (long)bytes, 0, 0) == 0;
	if (!locked)
		sy__system(SYS_munlock, sy__system_word(p), (long)bytes, 0, 0);
	return locked;
}

/* A system-call filter refused: mprotect and madvise of this memory cannot fail in this way otherwise. */
static bool is_refused(long result)
{
	return result == -EPERM || result == -ENOSYS || result == -EACCES;
}

#ifdef SYS_futex
static bool is_accessible(const void *word)
{
	const long no_time[2] = { 0, 0 };

	return sy__system(SYS_futex, sy__system_word(word), FUTEX_WAIT_PRIVATE, 1, sy__system_word(no_time)) != -EFAULT;
}

/* Maps what isn't accessible yet of a range; both ends may be. */
static bool map_accessible(char *start, char *end)
{
	size_t page = (size_t)getpagesize();
	bool mapped;

	sy__lock(&remapping);
	while (start < end && is_accessible(start))
		start += page;
	while (start < end && is_accessible(end - page))
		end -= page;
	mapped = start == end || sy__system_map(start, (size_t)(end - start), PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED);
	if (mapped && start < end)
		sy__source_prefer_small(start, (size_t)(end - start));
	sy__unlock(&remapping);
	return mapped;
}
#else
static bool map_accessible(char *start, char *end)
{
	(void)start, (void)end;
	return false;
}
#endif

static bool make_accessible(char *start, char *end)
{
	long failed;

	if (locks && sy__system_is_shut_in()) /* the system locks what it maps, and no call for that need be let through */
		return map_accessible(start, end);
	failed = sy__system(SYS_mprotect, sy__system_word(start), (long)(end - start), PROT_READ | PROT_WRITE, 0);
	return !failed || (is_refused(failed) && map_accessible(start, end));
}

/* If the lock fails the space stays accessible, because its first page may be shared with memory committed before. */
int sy__source_commit(void *p, size_t bytes)
{
	uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t start = (uintptr_t)p & ~mask, end = ((uintptr_t)p + bytes + mask) & ~mask;

	if (!make_accessible((char *)start, (char *)end) || !lock_pages((void *)start, end - start))
		return -1;
#ifdef MADV_DODUMP
	sy__system_advise((void *)start, end - start, MADV_DODUMP);
#endif
	return 0;
}

/* Discards locked memory. An emulator accepts an unknown advice without doing it, so a mark in the memory tells whether it was done. */
static long drop_locked(volatile char *start, char *end)
{
	long failed;

	*start = 1;
	failed = sy__system(SYS_madvise, sy__system_word((char *)start), (long)(end - start), DONTNEED_LOCKED, 0);
	return failed || !*start ? failed : -EINVAL;
}

static bool drop(char *start, char *end)
{
	long failed = sy__system(SYS_madvise, sy__system_word(start), (long)(end - start), MADV_DONTNEED, 0);

	if (failed == -EINVAL)
		failed = drop_locked(start, end);
	if (is_refused(failed))
		failed = !sy__system_map(start, (size_t)(end - start), PROT_READ | PROT_WRITE, MAP_NORESERVE | MAP_FIXED);
	return !failed;
}

void sy__source_discard(void *p, size_t bytes)
{
	uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t start = (uintptr_t)p, end = start + bytes, from = (start + mask) & ~mask, to = end & ~mask;

	if (from >= to || !drop((char *)from, (char *)to))
		from = to = end;
	sy__fill(p, 0, from - start);
	sy__fill((void *)to, 0, end - to);
}

/* If the system refuses, the memory goes on counting. */
void sy__source_withdraw(void *p, size_t bytes)
{
	uintptr_t mask = (uintptr_t)getpagesize() - 1;
	uintptr_t from = ((uintptr_t)p + mask) & ~mask, to = ((uintptr_t)p + bytes) & ~mask;

	sy__source_discard(p, bytes);
	if (from < to && sy__system_map((void *)from, to - from, PROT_NONE, MAP_NORESERVE | MAP_FIXED))
		set_up_reserved((void *)from, to - from);
}

bool sy__source_prefer_huge(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
	return !only_small && sy__system_advise(p, bytes, MADV_HUGEPAGE);
#else
	(void)p;
	(void)bytes;
	return false;
#endif
}

void sy__source_prefer_small(void *p, size_t bytes)
{
#ifdef MADV_NOHUGEPAGE
	sy__system_advise(p, bytes, MADV_NOHUGEPAGE);
#else
	(void)p;
	(void)bytes;
#endif
}

/* ---- What is in memory -------------------------------------------------------------------------------------------- */

void sy__system_shut_in(void)
{
	if (sy__system_is_shut_in())
		return;
	sy__system_limited(RLIMIT_AS, sy__system_limit(RLIMIT_AS));
	sy__system_limited(RLIMIT_DATA, sy__system_limit(RLIMIT_DATA));
	__atomic_store_n(&shut_in, true, __ATOMIC_RELAXED);
}

bool sy__system_is_shut_in(void)
{
	return __atomic_load_n(&shut_in, __ATOMIC_RELAXED);
}

static bool begins(const char *text, const char *with)
{
	while (*with && *text == *with) {
		text++;
		with++;
	}
	return !*with;
}

/* Whether the system says that no filter is in force. */
static bool is_free(void)
{
	static const char name[] = "\nSeccomp:\t0";
	char text[4096];

	sy__system_text("/proc/self/status", text, sizeof(text));
	for (const char *at = text; *at; at++)
		if (*at == '\n' && begins(at, name))
			return true;
	return false;
}

/* Relaxed: an answer that other threads find as well. */
bool sy__system_is_filtered(void)
{
	enum { UNKNOWN, FREE, FILTERED };
	static int parents;
	int known = __atomic_load_n(&parents, __ATOMIC_RELAXED);

	if (sy__system_is_shut_in())
		return true;
	if (known == UNKNOWN) {
		known = is_free() ? FREE : FILTERED;
		__atomic_store_n(&parents, known, __ATOMIC_RELAXED);
	}
	return known == FILTERED;
}

bool sy__source_tells(void)
{
	return !sy__system_is_shut_in() && (!sy__system_is_filtered() || sy__slots_high() > 2);
}

/* Asks piece by piece, until enough is found. */
bool sy__source_has(const void *p, size_t bytes, size_t least)
{
	unsigned char there[1024];
	size_t page = (size_t)getpagesize(), step, found = 0;

	if (!sy__source_tells())
		return true;
	for (size_t at = 0; at < bytes && found < least; at += step) {
		step = bytes - at < sizeof(there) * page ? bytes - at : sizeof(there) * page;
		if (sy__system(SYS_mincore, sy__system_word((const char *)p + at), (long)step, sy__system_word(there), 0))
			return true;
		for (size_t i = 0; i < step / page; i++)
			found += there[i] & 1 ? page : 0;
	}
	return found >= least;
}
