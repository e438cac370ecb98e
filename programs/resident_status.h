/*
 * Resident memory of this process, as the operating system tells: VmRSS is the present size, VmHWM the peak (proc_pid_status(5)).
 *
 * The peak can be reset (clear_refs of proc(5)). Where the system refuses that, it is the peak since the process began.
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

/* Resets the peak, VmHWM, to the present size. */
static inline void reset_resident_peak(void)
{
	FILE *file = fopen("/proc/self/clear_refs", "w");

	if (!file)
		return;
	fputs("5", file);
	fclose(file);
}

#endif
