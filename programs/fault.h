/* What is wrong, in one line for the user. A function of the programs that fails calls refuse() and returns false (or NULL). main()
 * prints the line and exits with status 2. */
#ifndef PROGRAMS_FAULT_H
#define PROGRAMS_FAULT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

struct fault {
	char text[400];
};

/* Writes the line; false always, so that callers return it. */
__attribute__((format(printf, 2, 3), cold)) static inline bool refuse(struct fault *fault, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault->text, sizeof fault->text, format, arguments);
	va_end(arguments);
	return false;
}

static inline bool refuse_output(struct fault *fault)
{
	return refuse(fault, "cannot write the result: standard output is full or closed");
}

#endif
