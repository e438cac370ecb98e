/*
 * What every malloc promises, whatever is switched on: alignment, zeroes, contents that stay, bytes that may be written, objects that
 * share none.
 *
 *   promises SEED CALLS   two threads make that many calls each, at random, and free each other's objects; prints ok
 *
 * A thread fills each object, up to the usable size, with bytes that follow from a number of its own. Whoever takes the object looks at
 * all of them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 200u
#define LARGEST_BITS 19 /* of most sizes */
#define HUGE_SIZE ((size_t)3 << 20)
#define MOST_ALIGN_BITS 20

struct object {
	unsigned char *start;
	size_t asked, room;
	uint64_t number;
};

static _Atomic(struct object *) places[PLACES];
static _Atomic uint64_t numbers;
static uint64_t seed;
static unsigned calls;

static void broken(const char *what, const struct object *object, size_t align)
{
	printf("%s: %p of %zu bytes, room for %zu, alignment %zu\n", what, (void *)object->start, object->asked, object->room, align);
	fflush(stdout);
	_Exit(1);
}

static uint64_t next(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *random >> 33;
}

/* As likely of any number of bits. */
static size_t any_size(uint64_t *random)
{
	if (next(random) % 400 == 0)
		return HUGE_SIZE + next(random) % HUGE_SIZE;
	return next(random) % ((size_t)2 << next(random) % LARGEST_BITS);
}

static uint64_t word_at(const struct object *object, size_t at)
{
	return (object->number + at) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(struct object *object)
{
	object->number = atomic_fetch_add(&numbers, UINT64_C(1) << 32);
	for (size_t at = 0; at < object->room; at += sizeof(uint64_t)) {
		uint64_t word = word_at(object, at);

		memcpy(object->start + at, &word, object->room - at < sizeof(word) ? object->room - at : sizeof(word));
	}
}

static void look(const struct object *object, const unsigned char *start, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
		uint64_t word = word_at(object, at);

		if (memcmp(start + at, &word, bytes - at < sizeof(word) ? bytes - at : sizeof(word)))
			broken("other contents", object, 0);
	}
}

/* Objects of up to 8 bytes need no more than 8. */
static size_t promised(size_t size)
{
	return size > 8 ? _Alignof(max_align_t) : 8;
}

/* `start` was handed out for `size` bytes. */
static void got(struct object *object, void *start, size_t size, size_t align)
{
	*object = (struct object){ start, size, start ? malloc_usable_size(start) : 0, 0 };
	if (!start)
		broken("no memory", object, align);
	if ((uintptr_t)start % align)
		broken("not aligned", object, align);
	if (object->room < size)
		broken("too small", object, align);
}

static void allocate(struct object *object, uint64_t *random)
{
	size_t size = any_size(random), align = (size_t)1 << next(random) % (MOST_ALIGN_BITS + 1);
	void *start = NULL;

	align = align < sizeof(void *) ? sizeof(void *) : align;
	switch (next(random) % 8) {
	case 0:
		got(object, calloc(1 + size / 7, 7), (1 + size / 7) * 7, promised((1 + size / 7) * 7));
		for (size_t i = 0; i < object->asked; i++)
			if (object->start[i])
				broken("not cleared", object, 0);
		break;
	case 1:
		got(object, memalign(align, size), size, align);
		break;
	case 2:
		size = (size + align - 1) & ~(align - 1);
		got(object, aligned_alloc(align, size), size, align);
		break;
	case 3:
		errno = 77;
		if (posix_memalign(&start, align, size) || errno != 77)
			broken("an error", object, align);
		got(object, start, size, align);
		break;
	case 4:
		got(object, reallocarray(NULL, 1 + size / 3, 3), (1 + size / 3) * 3, promised((1 + size / 3) * 3));
		break;
	default:
		got(object, malloc(size), size, promised(size));
	}
	fill(object);
}

static void resize(struct object *object, uint64_t *random)
{
	size_t size = 1 + any_size(random), stays = size < object->asked ? size : object->asked;
	struct object before = *object;

	got(object, realloc(object->start, size), size, promised(size));
	look(&before, object->start, stays);
	fill(object);
}

static void *work(void *salt)
{
	uint64_t random = seed + (uintptr_t)salt * UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned i = 0; i < calls; i++) {
		_Atomic(struct object *) *place = &places[next(&random) % PLACES];
		struct object *object = atomic_exchange(place, NULL);

		if (object)
			look(object, object->start, object->room);
		if (!object) {
			object = malloc(sizeof(*object));
			allocate(object, &random);
		} else if (next(&random) % 2) {
			resize(object, &random);
		} else {
			free(object->start);
			free(object);
			continue;
		}
		object = atomic_exchange(place, object);
		if (object) {
			free(object->start);
			free(object);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char buffer[200];
	pthread_t other;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	calls = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	pthread_create(&other, NULL, work, (void *)1);
	work((void *)2);
	pthread_join(other, NULL);
	puts("ok");
	return 0;
}
