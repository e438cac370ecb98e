/*
 * Settings: variables of the environment.
 *
 *   SLABYARD             the policy and its tunables (process.c)
 *   SLABYARD_DEBUG       checks of the program's objects (library/debug/spec.c)
 *   SLABYARD_RESERVE     bytes of addresses to reserve
 *   SLABYARD_LIMIT       bytes that malloc may hold
 *   SLABYARD_HUGE_PAGES  off: no huge pages for the heap
 *   SLABYARD_BACKGROUND  on: a thread gives back what others freed before they went idle (background.c)
 *   SLABYARD_SAMPLE      1/N of the allocations are guarded objects (sample.c)
 *   SLABYARD_STATS       a file for a report at the program's end (report.c)
 *
 * A value that makes no sense ends the program with one line and status 2. Programs with more rights than their user (set-user-ID)
 * ignore the environment. It is read without getenv: a library preloaded beside ours may have a getenv that allocates.
 */
#define _GNU_SOURCE
#include "parts.h"
#include "system.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "library/amount.h"
#include "library/spec.h"

#define LEAST_BYTES ((uint64_t)4 << 20)

extern char **environ;

/* A copy in a mapping of its own, because programs write their titles over the environment. */
static const char *copy(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *room = sy__system_map(NULL, bytes, PROT_READ | PROT_WRITE, 0);

	return room ? memcpy(room, text, bytes) : text;
}

const char *sy__setting(const char *name)
{
	size_t length = strlen(name);

	if (getauxval(AT_SECURE))
		return NULL;
	for (char **each = environ; each && *each; each++)
		if (!strncmp(*each, name, length) && (*each)[length] == '=')
			return (*each)[length + 1] ? copy(*each + length + 1) : NULL;
	return NULL;
}

void sy__setting_tell(const char *name, const char *value, const char *why)
{
	char shown[SY__SPEC_SHOWN], line[sizeof(struct sy_fault) + SY__SPEC_SHOWN + 48];
	int length;

	sy__spec_show(shown, sizeof(shown), value);
	length = snprintf(line, sizeof(line), "slabyard: %s=%s: %s\n", name, shown, why);
	sy__file_write(STDERR_FILENO, line, (size_t)length);
}

_Noreturn void sy__setting_refuse(const char *name, const char *value, const char *why)
{
	sy__setting_tell(name, value, why);
	_exit(2);
}

size_t sy__setting_bytes(const char *name)
{
	const char *value = sy__setting(name);
	uint64_t bytes;

	if (!value)
		return 0;
	if (!sy__amount(value, strlen(value), &bytes))
		sy__setting_refuse(name, value, "not a size: give bytes, or with a unit as in 512M (K, M or G)");
	if (bytes < LEAST_BYTES || bytes >= SY_HEAP_ADDRESSES)
		sy__setting_refuse(name, value,
		                   sizeof(void *) > 4 ? "out of range: from 4M to less than 16384G" : "out of range: from 4M to less than 1G");
	return (size_t)bytes;
}

bool sy__setting_on(const char *name, bool usually)
{
	const char *value = sy__setting(name);

	if (value && strcmp(value, "off") && strcmp(value, "on"))
		sy__setting_refuse(name, value, "not a choice: on or off");
	return value ? !strcmp(value, "on") : usually;
}
