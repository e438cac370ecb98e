/*
 * Planted bugs: small programs that each do one known thing wrong, or nothing.
 *
 * A source file is a program with many bugs of one kind. Its first argument chooses one; --list tells them all, a line each: the
 * name, the kind ("silent": there is no bug) and the functions that a report has to name. Before it does the wrong thing, a bug
 * tells on standard output what a report must say, in a line or, where more than one answer is right, in several:
 *
 *     expect KIND 0xADDRESS            of the free, of the first byte damaged
 *     expect KIND 0xFIRST-0xLAST       somewhere there: a constructed object that was changed
 *     expect leak 0xADDRESS SIZE       of the object
 *
 * The functions allocate_it, free_it and damage_it do what they are called after, and are never inlined, so that they are in stacks.
 */
#ifndef PLANTED_H
#define PLANTED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAST_END "write past the end"
#define BEFORE_START "write before the start"
#define AFTER_FREE "write after free"
#define DOUBLE_FREE "double free"
#define INTERIOR "interior free"
#define FOREIGN "foreign free"
#define WRONG_SIZE "wrong size"
#define WRONG_CACHE "wrong cache"
#define STATE "changed constructed state"
#define LEAK "leak"
#define NONE "silent"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)

#define NO_INLINE __attribute__((noinline, unused))
/* The compiler knows nothing of the pointer any more, nor of memory. */
#define OPAQUE(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")
/* After a call, which so is not the last thing done and leaves its caller in the stack. */
#define NOT_LAST() __asm__ volatile("" : : : "memory")

struct bug {
	const char *name, *kind, *found; /* found: functions that the report must name, separated by blanks */
	void (*run)(void);
};

/* BUG(name, kind, functions) { what it does }, below a comment of one line, which the documents show. */
#define BUG(id, kind_of, functions) \
	static void id(void); \
	static const struct bug id##_bug = {#id, kind_of, functions, id}; \
	__attribute__((section("planted"), used)) static const struct bug *const id##_listed = &id##_bug; \
	static void id(void)
#define SILENT(id) BUG(id, NONE, "-")

extern const struct bug *const __start_planted[], *const __stop_planted[];
static const struct bug *chosen;

static void need(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "planted: %s\n", what);
		exit(3);
	}
}

/* Tells what a report must say. dprintf allocates nothing. */
static NO_INLINE void expect_kind(const char *kind, const volatile void *address)
{
	dprintf(STDOUT_FILENO, "expect %s 0x%lx\n", kind, (unsigned long)(uintptr_t)address);
}

static NO_INLINE void expect(const volatile void *address)
{
	expect_kind(chosen->kind, address);
}

static NO_INLINE void expect_within(const volatile void *from, size_t size)
{
	unsigned long first = (unsigned long)(uintptr_t)from;

	dprintf(STDOUT_FILENO, "expect %s 0x%lx-0x%lx\n", chosen->kind, first, first + (unsigned long)size - 1);
}

static NO_INLINE void expect_leak(const volatile void *address, size_t size)
{
	dprintf(STDOUT_FILENO, "expect leak 0x%lx %lu\n", (unsigned long)(uintptr_t)address, (unsigned long)size);
}

/* Overwrites the stack below the caller, where calls that have returned left pointers. */
static NO_INLINE void scrub(void)
{
	volatile char stack[32 * KIB];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0;
}

/* Calls a function from so deep that scrub, called by our caller, overwrites all of its stack. */
static NO_INLINE void call_deeper(void (*function)(void))
{
	volatile char above[KIB];

	above[0] = 0;
	function();
	(void)above[0];
}

/* Calls a function, of which no pointer stays on the stack. */
static NO_INLINE void call_and_scrub(void (*function)(void))
{
	call_deeper(function);
	scrub();
}

int main(int count, char **words)
{
	for (const struct bug *const *at = __start_planted; at < __stop_planted; at++) {
		if (count == 2 && strcmp(words[1], "--list") == 0)
			printf("%s\t%s\t%s\n", (*at)->name, (*at)->kind, (*at)->found);
		else if (count == 2 && strcmp(words[1], (*at)->name) == 0)
			chosen = *at;
	}
	if (count == 2 && strcmp(words[1], "--list") == 0)
		return 0;
	need(chosen != NULL, "name one of --list");
	call_and_scrub(chosen->run);
	return 0;
}

/* ---- The three that reports name -------------------------------------------------------------------------------- */

static NO_INLINE unsigned char *allocate_it(size_t size)
{
	unsigned char *object = (unsigned char *)malloc(size);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE unsigned char *callocate_it(size_t count, size_t size)
{
	unsigned char *object = (unsigned char *)calloc(count, size);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE unsigned char *reallocate_it(void *old, size_t size)
{
	unsigned char *object = (unsigned char *)realloc(old, size);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE unsigned char *align_and_allocate_it(size_t align, size_t size)
{
	unsigned char *object = (unsigned char *)aligned_alloc(align, size);

	OPAQUE(object);
	need(object != NULL, "no memory");
	return object;
}

static NO_INLINE void free_it(void *object)
{
	free(object);
	NOT_LAST();
}

/* Writes bytes from the first to the last. */
static NO_INLINE void damage_it(volatile unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = 'A';
}

/* ---- What several of them do ------------------------------------------------------------------------------------ */

#define MOST_PRESSED 512

/* Reuse pressure: so many objects of a size, allocated and then freed. */
static NO_INLINE void press(size_t size, unsigned count)
{
	static void *objects[MOST_PRESSED];

	for (unsigned i = 0; i < count; i++)
		objects[i] = allocate_it(size);
	for (unsigned i = 0; i < count; i++) {
		free_it(objects[i]);
		objects[i] = NULL;
	}
}

/* Has a thread call a function, and waits until it has ended. */
static NO_INLINE void in_a_thread(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	need(pthread_create(&thread, NULL, function, argument) == 0, "no thread");
	pthread_join(thread, NULL);
}

#endif
