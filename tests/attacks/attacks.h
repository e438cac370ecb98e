/*
 * Classic attacks on a heap, as programs. Each misuses memory as an exploit would; its exit status says what came of it.
 *
 *   WON (10)     the attacker has what he wanted: an object where he chose, an object with two owners, a secret
 *   FAILED (0)   the attacker has not, and the program went on
 *   by a signal  the allocator, or the machine, has ended the program
 *
 * The first argument chooses an attack; --list prints them all, one in a line. Each attack is written for allocators of many
 * kinds. The attacker knows their source, but not their secrets, so he writes what would be right for a plain allocator. Where
 * he needs luck, he tries for a while. All attacks use malloc; those on caches use the library's (bench/attacks.py builds them
 * with it).
 */
#ifndef ATTACKS_H
#define ATTACKS_H

#define _GNU_SOURCE
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WON 10
#define FAILED 0

struct attack {
	const char *name;
	bool (*run)(void); /* whether it was won */
};

/* ATTACK(name) { … }, below a comment of one line, which the documents show. */
#define ATTACK(id)                                                                                                         \
	static bool id(void);                                                                                              \
	static const struct attack id##_attack = { #id, id };                                                              \
	__attribute__((section("attacks"), used)) static const struct attack *const id##_listed = &id##_attack;           \
	static bool id(void)

/* The compiler knows nothing of the pointer any more, nor of memory. */
#define OPAQUE(pointer) __asm__ volatile("" : "+r"(pointer) : : "memory")

extern const struct attack *const __start_attacks[], *const __stop_attacks[];

/* Used through these, so that no compiler sees that memory was freed. */
static __attribute__((noinline, unused)) void *take(size_t size)
{
	void *object = malloc(size);

	OPAQUE(object);
	return object;
}

static __attribute__((noinline, unused)) void drop(void *object)
{
	OPAQUE(object);
	free(object);
}

static inline uintptr_t word_at(const void *object, size_t offset)
{
	uintptr_t word;

	memcpy(&word, (const char *)object + offset, sizeof(word));
	return word;
}

static inline void set_word(void *object, size_t offset, uintptr_t word)
{
	memcpy((char *)object + offset, &word, sizeof(word));
}

int main(int argc, char **argv)
{
	for (const struct attack *const *at = __start_attacks; at < __stop_attacks; at++) {
		if (argc > 1 && !strcmp(argv[1], "--list"))
			printf("%s\n", (*at)->name);
		else if (argc > 1 && !strcmp(argv[1], (*at)->name))
			return (*at)->run() ? WON : FAILED;
	}
	if (argc > 1 && !strcmp(argv[1], "--list"))
		return 0;
	fprintf(stderr, "attacks: there is none of that name\n");
	return 2;
}

#endif
