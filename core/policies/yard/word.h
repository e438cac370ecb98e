/*
 * yard: the word of a slab.
 *
 * Whoever frees into a slab that he does not own changes three things at once: the slab's list of free objects, the number of its
 * objects in use, and perhaps where the slab belongs. All of it is in one word of 64 bits, changed by compare-and-exchange:
 *
 *     bit  63     62 … 48    47 … 32   31 … 0
 *          owned  objects    in use    first
 *
 *   first    the first free object: the lower half of its address; all ones: none. The upper half follows from any other
 *            address in the slab, as that is near. The objects behind it are linked by ordinary pointers.
 *   in use   objects held by clients, by the owner (on its freelist, the slab's local list, or not yet carved), or on the remote
 *            lists of slots
 *   objects  room; 0 while the slab waits for a grace period
 *   owned    the slab belongs to a slot
 *
 * What may be done to it, and by whom:
 *
 *   push       whoever holds objects of the slab: puts them in front, so many fewer are in use.
 *   take back  the slot that filled a full slab, and holds an object of it: the slab is owned.
 *   take all   the owner: the whole list, all objects are in use.
 *   leave      the owner, of a slab in which nothing is free: the slab is not owned any more.
 *   own        whoever holds the node's lock, a slab on its list, with taking all.
 *   release    the owner, under the node's lock: the slab is not owned any more; with a push of what it has.
 *
 * Nobody takes a single object, and that is why the word needs no version number. Between reading the word and exchanging it, a
 * free object may have left and come back; but a push is right whenever the first object is the one that was read, and taking all
 * takes whatever is there. Nor can the slab have become another one: whoever works on it holds an object of it, owns it, or finds
 * it on a list under that list's lock.
 *
 * A slab with free objects that nobody owns is on its node's list, and one that becomes empty may leave it. So a push that would
 * make such a slab empty, or a full one partial, is done under the node's lock, which then covers both the word and the list:
 * who holds the lock finds on the list exactly the slabs that the words say, but for those that the holder has in hand.
 *
 * Memory order. Reading is relaxed: what was read is a guess until the exchange confirms it. The exchange releases and acquires.
 * It releases what the pushing thread did to the object, its link and whatever its client wrote, to the slot that takes the list,
 * and through it to the client that gets the object. And with the owned bit, the local list and the links beside the word pass
 * from the slot that left the slab (it last wrote them: release) to the next owner (acquire), with no lock that both take.
 */
#ifndef SY_YARD_WORD_H
#define SY_YARD_WORD_H

#include "../../types.h"

#define SY__YARD_MOST_OBJECTS 32767u /* in one slab: 15 bits */
#define SY__YARD_FIRST ((uint64_t)UINT32_MAX)
#define SY__YARD_ONE_IN_USE ((uint64_t)1 << 32)
#define SY__YARD_OBJECTS_SHIFT 48
#define SY__YARD_IN_USE_PART (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 1) /* of four parts of 16 bits, in memory */
#define SY__YARD_OWNED ((uint64_t)1 << 63)

_Static_assert((uint64_t)SY_PAGE_SIZE << SY_MAX_ORDER <= INT32_MAX, "the lower half of an address in a slab tells how far it is from another");

static inline uint32_t sy__yard_word_in_use(uint64_t word)
{
	return (uint32_t)(word >> 32) & 0xffffu;
}

static inline uint32_t sy__yard_word_objects(uint64_t word)
{
	return (uint32_t)(word >> SY__YARD_OBJECTS_SHIFT) & SY__YARD_MOST_OBJECTS;
}

static inline bool sy__yard_word_owned(uint64_t word)
{
	return word & SY__YARD_OWNED;
}

/* Nothing is on the word's list. */
static inline bool sy__yard_word_full(uint64_t word)
{
	return (uint32_t)word == UINT32_MAX;
}

/* The first free object of the slab that this address is in; or NULL. */
static inline void *sy__yard_word_first(uint64_t word, void *near)
{
	return sy__yard_word_full(word) ? NULL : (char *)near + (int32_t)((uint32_t)word - (uint32_t)(uintptr_t)near);
}

/* As the word, with `count` objects in front that were in use; the first of them is this one. */
static inline uint64_t sy__yard_word_push(uint64_t word, const void *object, uint32_t count)
{
	return (word >> 32 << 32 | (uint32_t)(uintptr_t)object) - count * SY__YARD_ONE_IN_USE;
}

/* Whether a push of so many leaves the slab where it is: a slot owns it, or it is partial and will not be empty. */
static inline bool sy__yard_word_stays(uint64_t word, uint32_t count)
{
	return sy__yard_word_owned(word) || (!sy__yard_word_full(word) && sy__yard_word_in_use(word) > count);
}

/* An owned slab of so many objects, all of which the owner has. */
static inline uint64_t sy__yard_word_taken(uint64_t objects)
{
	return SY__YARD_OWNED | objects << SY__YARD_OBJECTS_SHIFT | objects * SY__YARD_ONE_IN_USE | SY__YARD_FIRST;
}

/* As the word, with nothing free; owned or not as it was. */
static inline uint64_t sy__yard_word_take(uint64_t word)
{
	uint64_t objects = sy__yard_word_objects(word);

	return (word & SY__YARD_OWNED) | objects << SY__YARD_OBJECTS_SHIFT | objects * SY__YARD_ONE_IN_USE | SY__YARD_FIRST;
}

#endif
