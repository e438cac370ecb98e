/*
 * What a program has for debugging: stacks by the compiler's unwinder, and numbers of threads.
 *
 * The unwinder reads the tables that every module carries for exceptions, so a program need not keep frame pointers. Frames inside of
 * this library are left out where it is a module of its own.
 */
#include "spec.h"

#include "report.h"
#include "core/debug/debug.h"
#include "core/platform/system_call.h"

#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

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

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *to)
{
	uintptr_t address = (uintptr_t)_Unwind_GetIP(context);
	struct walk *walk = to;

	if (!address || walk->count == walk->most)
		return _URC_END_OF_STACK;
	if (walk->count || address < own.start || address >= own.end)
		walk->frames[walk->count++] = address;
	return _URC_NO_REASON;
}

static unsigned stack(uintptr_t *frames, unsigned most)
{
	struct walk walk = { frames, 0, most };
	bool first = true;

	if (!__atomic_load_n(&own.known, __ATOMIC_ACQUIRE)) {
		dl_iterate_phdr(find_own, &first);
		__atomic_store_n(&own.known, 1, __ATOMIC_RELEASE);
	}
	_Unwind_Backtrace(step, &walk);
	return walk.count;
}

static uint64_t thread(void)
{
	return (uint64_t)sy__system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

const struct sy__debug_hooks sy__debug_program = { stack, thread, sy__bug_tell, sy__debug_checks_of };
