/*
 * Fatal errors. There is one way to fail: a line on standard error and exit status 2. _exit leaves threads and buffers as they
 * are, so nothing half-made reaches standard output.
 */
#include "import.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

void die(const char *format, ...)
{
	va_list arguments;
	fputs("slabyard-import: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(2);
}

void *grow(void *memory, size_t count, size_t bytes)
{
	void *larger = count > SIZE_MAX / bytes ? NULL : realloc(memory, count * bytes);
	if (!larger)
		die("out of memory (%zu elements of %zu bytes); import the capture in parts", count, bytes);
	return larger;
}

void *zeroed(size_t count, size_t bytes)
{
	void *memory = calloc(count ? count : 1, bytes);
	if (!memory)
		die("out of memory (%zu elements of %zu bytes); import the capture in parts", count, bytes);
	return memory;
}
