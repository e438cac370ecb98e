/* What a program has for debugging: stacks, numbers of threads, and reports. */
#include "spec.h"

#include "faults.h"
#include "leaks.h"
#include "report.h"
#include "stack.h"
#include "core/debug/debug.h"
#include "core/platform/system_call.h"

#include <sys/syscall.h>

/* 0 under a filter, which might not expect the question. */
static uint64_t thread(void)
{
	return sy__system_is_shut_in() ? 0 : (uint64_t)sy__system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

static void attached(struct sy_heap *heap)
{
	sy__faults_watch();
	sy__debug_watch(heap);
}

const struct sy__debug_hooks sy__debug_program = { sy__stack_read, thread, sy__bug_tell, sy__debug_checks_of, attached };
