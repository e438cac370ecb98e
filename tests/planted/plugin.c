/* A library that silent.c opens: it keeps the only pointer to an object, and gives others to its caller. */
#include <stdlib.h>
#include <string.h>

void *planted_take(size_t size);
int planted_kept(void);

static char *kept;

__attribute__((constructor)) static void start(void)
{
	kept = strdup("made when the library was loaded");
}

__attribute__((destructor)) static void end(void)
{
	free(kept);
}

void *planted_take(size_t size)
{
	return malloc(size);
}

int planted_kept(void)
{
	return kept != NULL;
}
