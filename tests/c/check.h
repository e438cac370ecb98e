/*
 * What every C test uses. A test program calls its tests from main and ends with `return check_result();`. A check that
 * does not hold is printed with its place and values, counted, and the program goes on: one run shows all that is wrong.
 * However a program ends, its exit status is not 0 when a check did not hold.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned check_failures;

#define CHECK(condition) check_that((condition) ? 1 : 0, __FILE__, __LINE__, __func__, #condition)

/* Integers of any width, compared and printed as 64 bits. */
#define CHECK_EQUAL(is, should) \
	check_equal((uint64_t)(is), (uint64_t)(should), __FILE__, __LINE__, __func__, #is)

/* Texts or NULL. */
#define CHECK_TEXT(is, should) check_text((is), (should), __FILE__, __LINE__, __func__, #is)

/* Memory in which every byte is the same; the first other one is printed. */
#define CHECK_BYTES(memory, byte, size) check_bytes((memory), (byte), (size), __FILE__, __LINE__, __func__, #memory)

/* For functions that return NULL, or what is wrong. */
#define CHECK_FINE(expression) CHECK_TEXT((expression), NULL)

static inline void check_exit(void)
{
	fflush(NULL);
	_Exit(EXIT_FAILURE);
}

static inline void check_failed(void)
{
	if (!check_failures++)
		atexit(check_exit);
}

static inline void check_that(int holds, const char *file, int line, const char *test, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: %s: not so: %s\n", file, line, test, what);
	check_failed();
}

static inline void check_equal(uint64_t is, uint64_t should, const char *file, int line, const char *test, const char *what)
{
	if (is == should)
		return;
	fprintf(stderr, "%s:%d: %s: %s is %" PRIu64 ", not %" PRIu64 "\n", file, line, test, what, is, should);
	check_failed();
}

static inline void check_text(const char *is, const char *should, const char *file, int line, const char *test,
                              const char *what)
{
	if (is == should || (is && should && !strcmp(is, should)))
		return;
	fprintf(stderr, "%s:%d: %s: %s is \"%s\", not \"%s\"\n", file, line, test, what, is ? is : "(none)",
	        should ? should : "(none)");
	check_failed();
}

/* Whether an emulator of another processor runs the test (SLABYARD_EMULATED is set). It sets no limits to a program's
 * memory, and keeps tables as large as all the address space that it reserves. Tells what a test leaves out there. */
static inline int check_emulated(const char *left_out)
{
	if (!getenv("SLABYARD_EMULATED"))
		return 0;
	printf("left out under emulation: %s\n", left_out);
	return 1;
}

static inline void check_bytes(const void *memory, unsigned char byte, size_t size, const char *file, int line, const char *test,
                               const char *what)
{
	const unsigned char *bytes = (const unsigned char *)memory;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != byte) {
			fprintf(stderr, "%s:%d: %s: byte %zu of %s is %u, not %u\n", file, line, test, i, what, bytes[i], byte);
			check_failed();
			return;
		}
}

/* Whether the test runs under the thread sanitizer or an emulator of another processor. Both are tens of times slower. */
static inline int check_slow(void)
{
#ifdef __SANITIZE_THREAD__
	return 1;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return 1;
#endif
#endif
	return getenv("SLABYARD_EMULATED") != NULL;
}

/* How often to repeat random work: a quarter as often where it is slow. The nightly soak repeats such work for longer. */
static inline unsigned check_times(unsigned count)
{
	return check_slow() ? count / 4 : count;
}

/* Whether there is address space for that much memory; a 32-bit machine ends at 2 GiB. */
static inline int check_addressable(uint64_t bytes)
{
	return bytes <= SIZE_MAX / 2;
}

/* Random numbers that are the same everywhere: xorshift64*. The state must not be 0. */
static inline uint64_t check_random(uint64_t *random)
{
	*random ^= *random >> 12;
	*random ^= *random << 25;
	*random ^= *random >> 27;
	return *random * UINT64_C(2685821657736338717);
}

/* Runs a test under a policy or a spec; if a check fails in it, the name follows. */
static inline void check_under(const char *policy, void (*test)(const char *policy))
{
	unsigned before = check_failures;

	test(policy);
	if (check_failures != before)
		fprintf(stderr, "that was %s\n", policy);
}

/* The same under every policy. */
#define CHECK_POLICIES(test) \
	do { \
		for (const struct sy_policy *const *check_at = sy_policies; *check_at; check_at++) \
			check_under((*check_at)->name, test); \
	} while (0)

static inline int check_result(void)
{
	if (check_failures)
		fprintf(stderr, "%u checks failed\n", check_failures);
	return check_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
