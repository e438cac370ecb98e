/*
 * Accesses of guarded objects that the processor refuses, of malloc and of heaps that the program opens.
 *
 *   guarded WHERE WHAT
 *
 * WHERE: malloc, aligned (to more than a page), heap (sy_heap_open), kmem (kmalloc). WHAT: write, read (behind the last page);
 * write-freed, read-freed. It prints the object's address and the one that it touches.
 */
#include <slabyard/kmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 4096u

static struct sy_heap *heap;

static char *allocate_it(const char *where)
{
	if (!strcmp(where, "malloc"))
		return malloc(SIZE);
	if (!strcmp(where, "aligned"))
		return aligned_alloc(16 * SIZE, SIZE);
	if (!strcmp(where, "kmem"))
		return kmalloc(SIZE, GFP_KERNEL);
	heap = sy_heap_open(getenv("SLABYARD"), NULL, NULL);
	return heap ? sy_malloc(heap, SIZE, 0) : NULL;
}

static void free_it(const char *where, char *object)
{
	if (heap)
		sy_mfree(heap, object);
	else if (!strcmp(where, "kmem"))
		kfree(object);
	else
		free(object);
}

int main(int argc, char **argv)
{
	char *volatile object;
	volatile char *touched;

	if (argc != 3 || !(object = allocate_it(argv[1])))
		return 3;
	touched = object + SIZE;
	if (strstr(argv[2], "freed")) {
		free_it(argv[1], object);
		touched = object + 100;
	}
	printf("%p %p\n", (void *)object, (void *)(uintptr_t)touched);
	fflush(stdout);
	if (!strncmp(argv[2], "write", 5))
		*touched = 1;
	else
		(void)*touched;
	return 0;
}
