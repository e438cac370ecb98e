/* A program that knows nothing of slabyard and is linked with its malloc. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char *text = malloc(100);

	if (!text)
		return 1;
	strcpy(text, "served");
	text = realloc(text, 200000);
	if (!text || malloc_usable_size(text) < 200000)
		return 1;
	puts(text);
	free(text);
	malloc_stats(); /* tells whose malloc it is, on standard error */
	return 0;
}
