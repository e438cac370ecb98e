/*
 * Debugging in a kernel: `debug=` at the end of the spec on the command line, and reports in the kernel's log.
 *
 * 	slabyard=slub:debug=FZPU,dentry     slabyard=yard:min_partial=2,debug=ZP
 *
 * The text is that of programs (library/debug/spec.c): letters of checks, patterns of caches. So are the reports (library/debug/text.c).
 * After one the kernel goes on: what was freed wrongly, or is damaged, stays in use for ever. A kernel that is to stop there is booted
 * with `,panic` behind all that, which is this port's own word.
 *
 * Not here: leaks (kmemleak finds them), and pages of an object's own (KFENCE has those).
 */
#include "port.h"

#include "library/debug/spec.h"
#include "library/debug/text.h"

#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>

#define QUARANTINE ((size_t)1 << 20)
#define TRANSACTIONS 4096u
#define STACKS 4096u
#define PANIC ",panic"

static struct sy_debug_config config; /* checks 0: no debugging */
static bool panics;

void __init sy__linux_debug_read(char *text)
{
	size_t length = strlen(text);
	struct sy_fault fault;

	panics = length > strlen(PANIC) && !strcmp(text + length - strlen(PANIC), PANIC);
	if (panics)
		text[length - strlen(PANIC)] = '\0';
	if (!sy__debug_parse(&config, text, &fault)) {
		pr_err("slabyard: debug=%s: %s\n", text, fault.text);
		config.checks = 0;
		return;
	}
	config.checks &= ~(uint32_t)(SY_DEBUG_LEAKS | SY_DEBUG_PAGES);
	config.quarantine = min(config.quarantine, QUARANTINE);
	config.ring = min(config.ring, TRANSACTIONS);
	config.stacks = STACKS;
}

void __init sy__linux_debug(struct sy_debug_config *to)
{
	*to = config;
	to->hooks = &sy__debug_program;
}

/* ---- What the checks need ----------------------------------------------------------------------------------------- */

#ifndef CONFIG_STACKTRACE
#define stack_trace_save(frames, most, skipped) 0u
#endif

static unsigned stack(uintptr_t *frames, unsigned most)
{
	return stack_trace_save((unsigned long *)frames, most, 2);
}

static uint64_t thread(void)
{
	return current->pid;
}

/* ---- The kernel's log --------------------------------------------------------------------------------------------- */

static sy__lock_t telling = SY__LOCK_INIT;
static char line[400];

/* Lines go to the log whole. */
void sy__say(const char *format, ...)
{
	size_t used = strlen(line);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - used, format, arguments);
	va_end(arguments);
	used = strlen(line);
	if (line[used - 1] != '\n' && used < sizeof(line) - 1)
		return;
	pr_err("%s%s", line, line[used - 1] == '\n' ? "" : "\n");
	line[0] = '\0';
}

const char *sy__symbol_of(uintptr_t address)
{
	static char name[KSYM_SYMBOL_LEN];

	snprintf(name, sizeof(name), "%pB", (void *)address);
	return name;
}

bool sy__symbol_is_own(uintptr_t address)
{
	return false;
}

static void report(struct sy_heap *heap, const struct sy__finding *finding)
{
	static struct sy__report is;

	sy__lock(&telling);
	is = (struct sy__report){ .heap = heap, .finding = finding, .now = sy__now() };
	sy__report_gather(&is);
	is.here = &is.told[is.count++];
	*is.here = (struct sy__told){ .what = "called", .time = is.now, .thread = thread(), .cache = finding->record.cache };
	is.here->depth = stack(is.here->frames, SY__DEBUG_FRAMES);
	sy__report_say(&is);
	sy__unlock(&telling);
	if (panics)
		panic("slabyard: %s", sy_bug_name(finding->kind));
}

const struct sy__debug_hooks sy__debug_program = { stack, thread, report, sy__debug_checks_of };
