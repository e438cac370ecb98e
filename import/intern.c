/*
 * Texts as numbers, in order of first appearance. A capture of twenty million events has a few thousand different call sites and
 * a few dozen flag combinations and cache names, and they repeat all the time. So a lookup first tries a small table of recent
 * texts, then an open-addressing hash table.
 *
 * One interner belongs to one thread; capture_join() merges those of several inputs.
 */
#include "import.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash_of(const char *text, size_t length)
{
	uint64_t hash = 0x9e3779b97f4a7c15u ^ length;
	while (length >= 8) {
		uint64_t word;
		memcpy(&word, text, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
		text += 8;
		length -= 8;
	}
	uint64_t tail = 0;
	memcpy(&tail, text, length);
	hash = (hash ^ tail) * 0xff51afd7ed558ccdu;
	return (uint32_t)(hash ^ (hash >> 29) ^ (hash >> 47));
}

static bool same(const struct interner *interner, uint32_t number, uint32_t hash, const char *text, size_t length)
{
	return interner->hashes[number] == hash && interner->lengths[number] == length &&
	       memcmp(interner->texts[number], text, length) == 0;
}

void intern_init(struct interner *interner, uint32_t limit)
{
	*interner = (struct interner){.limit = limit, .mask = 1023};
	interner->slots = zeroed(interner->mask + 1, sizeof *interner->slots);
}

void intern_free(struct interner *interner)
{
	for (uint32_t i = 0; i < interner->count; i++)
		free(interner->texts[i]);
	free(interner->texts);
	free(interner->hashes);
	free(interner->lengths);
	free(interner->slots);
}

void texts_init(struct texts *texts)
{
	intern_init(&texts->call_sites, NONE - 1);
	intern_init(&texts->stacks, NONE - 1);
	intern_init(&texts->gfp, NO_TEXT - 1);
	intern_init(&texts->names, NO_TEXT - 1);
	intern_init(&texts->marks, NONE - 1);
}

void texts_free(struct texts *texts)
{
	intern_free(&texts->call_sites);
	intern_free(&texts->stacks);
	intern_free(&texts->gfp);
	intern_free(&texts->names);
	intern_free(&texts->marks);
}

static void place(struct interner *interner, uint32_t number)
{
	uint32_t slot = interner->hashes[number] & interner->mask;
	while (interner->slots[slot])
		slot = (slot + 1) & interner->mask;
	interner->slots[slot] = number + 1;
}

static void widen(struct interner *interner)
{
	free(interner->slots);
	interner->mask = 2 * interner->mask + 1;
	interner->slots = zeroed((size_t)interner->mask + 1, sizeof *interner->slots);
	for (uint32_t i = 0; i < interner->count; i++)
		place(interner, i);
}

static uint32_t add(struct interner *interner, uint32_t hash, const char *text, size_t length)
{
	if (interner->count == interner->limit)
		return NONE;
	if (interner->count == interner->room) {
		interner->room = interner->room ? 2 * interner->room : 256;
		interner->texts = grow(interner->texts, interner->room, sizeof *interner->texts);
		interner->hashes = grow(interner->hashes, interner->room, sizeof *interner->hashes);
		interner->lengths = grow(interner->lengths, interner->room, sizeof *interner->lengths);
	}
	uint32_t number = interner->count++;
	char *copy = grow(NULL, length + 1, 1);
	memcpy(copy, text, length);
	copy[length] = '\0';
	interner->texts[number] = copy;
	interner->hashes[number] = hash;
	interner->lengths[number] = length;
	if (2 * interner->count > interner->mask)
		widen(interner);
	else
		place(interner, number);
	return number;
}

uint32_t intern(struct interner *interner, const char *text, size_t length)
{
	uint32_t hash = hash_of(text, length);
	uint32_t *recent = &interner->recent[hash >> 24];
	if (likely(*recent && same(interner, *recent - 1, hash, text, length)))
		return *recent - 1;
	uint32_t slot = hash & interner->mask;
	while (interner->slots[slot]) {
		uint32_t number = interner->slots[slot] - 1;
		if (same(interner, number, hash, text, length)) {
			*recent = number + 1;
			return number;
		}
		slot = (slot + 1) & interner->mask;
	}
	return add(interner, hash, text, length);
}
