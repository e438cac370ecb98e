/*
 * Stacks by the compiler's unwinder. It reads the tables that every module carries for exceptions, so a program need not keep frame
 * pointers. Where no unwinder can be linked, stack_none.c is built instead of this file.
 */
#include "stack.h"

#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unwind.h>

/* ---- The frames of a caller --------------------------------------------------------------------------------------- */

static struct {
	uintptr_t start, end; /* 0: not known yet, or the library is a part of the program */
	int known;
} own;

static int find_own(struct dl_phdr_info *module, size_t size, void *is_first)
{
	uintptr_t here = (uintptr_t)&find_own;
	bool first = *(bool *)is_first;

	(void)size;
	*(bool *)is_first = false;
	for (unsigned i = 0; i < module->dlpi_phnum; i++) {
		uintptr_t start = module->dlpi_addr + module->dlpi_phdr[i].p_vaddr, end = start + module->dlpi_phdr[i].p_memsz;

		if (module->dlpi_phdr[i].p_type != PT_LOAD || here < start || here >= end)
			continue;
		own.start = first ? 0 : start;
		own.end = first ? 0 : end;
		return 1;
	}
	return 0;
}

struct walk {
	uintptr_t *frames;
	unsigned count, most;
};

/* A handler returns to code of the system's, of no use to a reader. The instruction behind it, which the signal has interrupted, is no
 * return address, but is kept as if it were one. */
static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *to)
{
	int interrupted = 0;
	uintptr_t address = (uintptr_t)_Unwind_GetIPInfo(context, &interrupted);
	struct walk *walk = to;

	if (interrupted) {
		walk->count -= walk->count > 0;
		address++;
	}
	if (!address || walk->count == walk->most)
		return _URC_END_OF_STACK;
	if (walk->count || address < own.start || address >= own.end)
		walk->frames[walk->count++] = address;
	return _URC_NO_REASON;
}

unsigned sy__stack_read(uintptr_t *frames, unsigned most)
{
	struct walk walk = { frames, 0, most };
	bool first = true;

	if (!__atomic_load_n(&own.known, __ATOMIC_ACQUIRE)) {
		dl_iterate_phdr(find_own, &first);
		__atomic_store_n(&own.known, 1, __ATOMIC_RELEASE);
	}
	_Unwind_Backtrace(add_frame, &walk);
	return walk.count;
}

/* ---- Where a program's stack begins -------------------------------------------------------------------------------- */

/* Registers that functions save for their callers, as the unwinder numbers them: from, to. */
#if defined(__x86_64__)
static const int saved[][2] = { { 3, 3 }, { 6, 6 }, { 12, 15 } };
#elif defined(__aarch64__)
static const int saved[][2] = { { 19, 29 } };
#elif defined(__arm__)
static const int saved[][2] = { { 4, 11 } };
#else
static const int saved[][2] = { { 0, -1 } };
#endif

#ifdef __thumb__
#define THUMB (uintptr_t)1 /* in the addresses of functions */
#else
#define THUMB (uintptr_t)0
#endif

struct search {
	struct sy__stack_start *start;
	bool in_exit; /* the last frame was exit's */
};

static _Unwind_Reason_Code look_for_exit(struct _Unwind_Context *context, void *to)
{
	struct search *search = to;

	if (!search->in_exit) {
		search->in_exit = (uintptr_t)_Unwind_GetRegionStart(context) == ((uintptr_t)exit & ~THUMB);
		return _URC_NO_REASON;
	}
	search->start->stack = (const void *)_Unwind_GetCFA(context);
	for (size_t i = 0; i < sizeof(saved) / sizeof(*saved); i++)
		for (int number = saved[i][0]; number <= saved[i][1]; number++)
			search->start->registers[search->start->count++] = (uintptr_t)_Unwind_GetGR(context, number);
	return _URC_END_OF_STACK;
}

void sy__stack_start_find(struct sy__stack_start *start, const void *caller)
{
	struct search search = { start, false };

	*start = (struct sy__stack_start){ .stack = caller };
	_Unwind_Backtrace(look_for_exit, &search);
}
