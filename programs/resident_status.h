/*
 * How much of this process is resident, as the operating system tells: VmRSS now, VmHWM the most so far (proc_pid_status(5)).
 *
 * The most so far can be made to begin anew (clear_refs of proc(5)); where the system refuses, it is that of the whole process.
 */
#ifndef PROGRAMS_RESIDENT_STATUS_H
#define PROGRAMS_RESIDENT_STATUS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A figure in kB from /proc/self/status; 0 where there is none. */
static inline uint64_t status_kb(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	unsigned long long value = 0;

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), ": %llu", &value) == 1)
			break;
	if (file)
		fclose(file);
	return value;
}

/* Lets the peak of resident memory, VmHWM, begin anew. */
static inline void reset_resident_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

#endif
