/*
 * SLUB: the word of a slab.
 *
 * Every free into a slab that is not the freeing slot's active one changes three things at once: the slab's list of
 * free objects, the number of its objects in use, and perhaps whom it belongs to. All of it is in one word of 64 bits, so that
 * a compare-and-exchange of that width does, where Linux needs one of two machine words:
 *
 *     bit  63      62 … 48    47 … 32   31 … 0
 *          frozen  objects    in use    first
 *
 *   first    the first free object: the lower half of its address; all ones: none. The upper half follows from any other
 *            address in the slab, as that is near. The objects behind it are linked by ordinary pointers.
 *   in use   objects held by clients, or by the freelist of the slot whose active slab this is
 *   objects  room; 0 while the slab waits for a grace period
 *   frozen   the slab belongs to a slot: its active slab, or on its partial list
 *
 * What may be done to it, and by whom:
 *
 *   push       anybody who holds an object of the slab: puts that in front, one fewer is in use. Together with
 *              freezing where the slab was full and slots keep slabs: then it is whoever pushed who owns it.
 *   take all   the slot that owns a frozen slab: the whole list, all objects are in use. If nothing is on it, unfreeze.
 *   freeze     whoever holds the node's lock, a slab on its list. Perhaps with taking all.
 *   unfreeze   the slot that owns it, under the node's lock; perhaps with pushing a chain of objects.
 *
 * There is no taking of a single object, and that is why the word needs no version number. Between reading the word and
 * exchanging it, a free object may have left and come back; but both ways of adding to the list are right whenever the
 * first object is the one that was read, and taking all takes whatever is there. Nor can the slab have become another one:
 * whoever works on it holds an object of it, owns it, or finds it on a list under that list's lock.
 *
 * An unfrozen slab with free objects is on its node's list, and one that becomes empty may leave it. So a push that would
 * make an unfrozen slab empty, or a full one partial where slots keep none, is done under the node's lock, which then
 * covers both the word and the list: who holds the lock finds on the list exactly the slabs that the words say, but for
 * those that the holder itself has in hand.
 *
 * Memory order. Reading is relaxed: what was read is only a guess until the exchange confirms it. The exchange releases and
 * acquires, for these two reasons. Released is what the pushing thread did to the object, its free pointer and whatever its
 * client wrote, to the slot that takes the list (acquire), and through it to the client that gets the object: each exchange in
 * between reads the one before, so what they released adds up. And with the frozen bit, ownership of the list link beside
 * the word passes from the slot that gave up the slab when it was full (it last wrote the link: release) to whoever freezes
 * it again (writes it: acquire), with no lock that both take.
 */
#ifndef SY_SLUB_WORD_H
#define SY_SLUB_WORD_H

#include "../../types.h"

#define SY__SLUB_MOST_OBJECTS 32767u /* in one slab: 15 bits */
#define SY__SLUB_FIRST ((uint64_t)UINT32_MAX)
#define SY__SLUB_ONE_IN_USE ((uint64_t)1 << 32)
#define SY__SLUB_OBJECTS_SHIFT 48
#define SY__SLUB_FROZEN ((uint64_t)1 << 63)

_Static_assert((uint64_t)SY_PAGE_SIZE << SY_MAX_ORDER <= INT32_MAX, "the lower half of an address in a slab tells how far it is from another");

static inline uint32_t sy__slub_word_in_use(uint64_t word)
{
	return (uint32_t)(word >> 32) & 0xffffu;
}

static inline uint32_t sy__slub_word_objects(uint64_t word)
{
	return (uint32_t)(word >> SY__SLUB_OBJECTS_SHIFT) & SY__SLUB_MOST_OBJECTS;
}

static inline bool sy__slub_word_frozen(uint64_t word)
{
	return word & SY__SLUB_FROZEN;
}

/* No object is free but those on the freelist of a slot. */
static inline bool sy__slub_word_full(uint64_t word)
{
	return (uint32_t)word == UINT32_MAX;
}

/* The first free object of the slab that this object is in; or NULL. */
static inline void *sy__slub_word_first(uint64_t word, void *object)
{
	return sy__slub_word_full(word) ? NULL : (char *)object + (int32_t)((uint32_t)word - (uint32_t)(uintptr_t)object);
}

/* As the word, with `count` objects in front that were in use; the first of them is this one. */
static inline uint64_t sy__slub_word_push(uint64_t word, const void *object, uint32_t count)
{
	return (word >> 32 << 32 | (uint32_t)(uintptr_t)object) - count * SY__SLUB_ONE_IN_USE;
}

/* A slab that is a slot's, with all its objects on that slot's freelist. */
static inline uint64_t sy__slub_word_taken(uint64_t objects)
{
	return SY__SLUB_FROZEN | objects << SY__SLUB_OBJECTS_SHIFT | objects * SY__SLUB_ONE_IN_USE | SY__SLUB_FIRST;
}

/* Whether a push of so many leaves everything else as it is: a slot owns the slab, or it has free objects and will not be
 * empty. */
static inline bool sy__slub_word_stays(uint64_t word, uint32_t count)
{
	return sy__slub_word_frozen(word) || (!sy__slub_word_full(word) && sy__slub_word_in_use(word) > count);
}

/* As the word, with nothing free; the slab stays frozen or not as it was. */
static inline uint64_t sy__slub_word_take(uint64_t word)
{
	uint64_t objects = sy__slub_word_objects(word);

	return (word & SY__SLUB_FROZEN) | objects << SY__SLUB_OBJECTS_SHIFT | objects * SY__SLUB_ONE_IN_USE | SY__SLUB_FIRST;
}

#endif
