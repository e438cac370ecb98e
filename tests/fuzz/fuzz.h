/*
 * What the fuzzers share. Each is a function from bytes to a verdict: it reads the bytes as a program of operations, or as a text,
 * and aborts where a promise is broken. libFuzzer makes the bytes (make fuzz); run.c reads them from the corpus.
 *
 * Bytes that are not there read as zero, so that every prefix of an input means something.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slabyard/slabyard.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *at;
	size_t left;
};

static inline unsigned take8(struct bytes *bytes)
{
	if (!bytes->left)
		return 0;
	bytes->left--;
	return *bytes->at++;
}

static inline unsigned take16(struct bytes *bytes)
{
	unsigned low = take8(bytes);

	return low | take8(bytes) << 8;
}

/* Of any magnitude from three bytes: sixteen bits, shifted. */
static inline uint32_t take_scaled(struct bytes *bytes)
{
	uint32_t number = take16(bytes);

	return number << take8(bytes) % 17;
}

/* The policy with that number; any number has one. */
static inline const struct sy_policy *policy_of(unsigned number)
{
	unsigned count = 0;

	while (sy_policies[count])
		count++;
	return sy_policies[number % count];
}

/* What is wrong, or NULL. */
static inline void fuzz_fine(const char *wrong)
{
	if (!wrong)
		return;
	fprintf(stderr, "fuzz: %s\n", wrong);
	abort();
}

#define FUZZ_CHECK(condition) fuzz_fine((condition) ? NULL : "not so: " #condition)

#endif
