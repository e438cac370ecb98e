/* The words of a command line of ours, and numbers in them. See options.c. */
#ifndef PROGRAMS_OPTIONS_H
#define PROGRAMS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "fault.h"

/* `--name VALUE`, or the switch `--name`. */
struct option {
	const char *name;   /* NULL: behind the last one */
	const char **value; /* where the value goes; NULL: a switch */
	bool *on;           /* of a switch: what it sets */
};

/* Reads the words behind the program's name until one is no option. The number of that word, `count` where there is none; 0: see fault. */
int options_read(const struct option *options, int count, char *const *words, struct fault *);

/* The value of an option, within bounds. Leaves `value` alone if the option was not given (text NULL). False: see fault. */
bool option_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value, struct fault *);

/* A decimal number within bounds, at `*text`, which then stands behind it. False: none, or out of bounds. */
bool number_read(const char **text, uint64_t min, uint64_t max, uint64_t *value);

/* The same of a text that is nothing else. */
bool number_whole(const char *text, uint64_t min, uint64_t max, uint64_t *value);

/* The exit status of a program of ours, 0 or 2; a fault is told on standard error. */
int program_status(const char *program, bool done, const struct fault *);

#endif
