/*
 * What a program says of its bugs, on standard error, before it aborts. Where the heap has no checks that is one line.
 *
 * Nothing here may allocate: the heap is in the middle of a call, with locks held, and what it holds may be damaged.
 */
#include "report.h"

#include "symbols.h"
#include "text.h"

#include <unistd.h>

void sy__say(const char *format, ...)
{
	char line[2300];
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	length = length < (int)sizeof(line) ? length : (int)sizeof(line) - 1;
	for (int at = 0; at < length;) {
		ssize_t written = write(STDERR_FILENO, line + at, (size_t)(length - at));

		if (written <= 0)
			return;
		at += (int)written;
	}
}

static void look_up(struct sy__report *report)
{
	uintptr_t addresses[(SY__MOST_TOLD + 1) * SY__DEBUG_FRAMES];
	size_t count = 0;

	for (unsigned i = 0; i < report->count; i++)
		for (unsigned j = 0; j < report->told[i].depth; j++)
			addresses[count++] = report->told[i].frames[j];
	sy__symbols_look_up(addresses, count);
}

/* ---- Reports ------------------------------------------------------------------------------------------------------ */

static void make(struct sy__report *report)
{
	sy__report_gather(report);
	report->here = &report->told[report->count];
	if (report->finding->kind != SY_BUG_LEAK) {
		*report->here = (struct sy__told){ .what = "called", .time = report->now, .thread = report->heap->debug->hooks->thread(),
			                       .cache = report->finding->record.cache };
		report->here->depth = report->heap->debug->hooks->stack(report->here->frames, SY__DEBUG_FRAMES);
		report->count++;
	}
	look_up(report);
	sy__report_say(report);
}

static int telling;
static _Thread_local bool tells;

bool sy__bug_is_told(void)
{
	return __atomic_load_n(&telling, __ATOMIC_RELAXED);
}

bool sy__bug_is_told_elsewhere(void)
{
	return sy__bug_is_told() && !tells;
}

void sy__bug_tell(struct sy_heap *heap, const struct sy__finding *finding)
{
	struct sy__report report = { .heap = heap, .finding = finding, .now = sy__now() };

	if (tells)
		abort(); /* met a bug in a handler of SIGABRT */
	if (__atomic_exchange_n(&telling, 1, __ATOMIC_ACQ_REL)) {
		for (;;)
			pause(); /* another thread's report ends the process */
	}
	tells = true;
	make(&report);
	abort();
}

void sy__bug_tell_leak(struct sy_heap *heap, const struct sy__finding *finding, size_t objects, size_t bytes)
{
	struct sy__report report = { .heap = heap, .finding = finding, .now = sy__now() };

	make(&report);
	if (!heap->debug->config.json)
		sy__say("(%zu object%s of %zu bytes together)\n", objects, objects == 1 ? "" : "s", bytes);
}

void sy__bug_report(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	struct sy__finding finding = { .kind = kind, .address = address };

	if (!heap->debug)
		sy__say("slabyard: %s: 0x%lx\n", sy_bug_name(kind), (unsigned long)address);
	else if (sy__debug_find_damage(heap, &finding))
		sy__bug_tell(heap, &finding);
	else
		sy__bug_tell(heap, &(struct sy__finding){ .kind = kind, .address = address });
	abort();
}
