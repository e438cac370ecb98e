/*
 * Objects of caches with constructors (Bonwick 1994, section 2): what is freed in another state than its constructor leaves it
 * in, and what is freed right. The heap is as the environment variable SLABYARD says.
 */
#include "planted.h"

#include <slabyard/slabyard.h>

struct list {
	struct list *next, *previous;
};

struct file {
	long count;
	pthread_mutex_t lock;
	struct list waiters;
	void *buffer;
	unsigned magic;
	char name[37]; /* of the user, without a constructed state */
};

static unsigned constructed, destructed;

static void construct(void *object, size_t size)
{
	struct file *file = (struct file *)object;

	need(size >= sizeof(*file), "the size is too small");
	constructed++;
	file->count = 0;
	pthread_mutex_init(&file->lock, NULL);
	file->waiters.next = file->waiters.previous = &file->waiters;
	file->buffer = NULL;
	file->magic = 0xf11e;
}

static void destruct(void *object, size_t size)
{
	struct file *file = (struct file *)object;

	(void)size;
	destructed++;
	need(file->magic == 0xf11e, "what is destructed was not constructed");
	pthread_mutex_destroy(&file->lock);
}

static struct sy_heap *heap;
static struct sy_cache *files;

static NO_INLINE struct sy_cache *create(size_t size, void (*constructor)(void *, size_t), void (*destructor)(void *, size_t))
{
	struct sy_cache_config config = {.name = "file", .size = size, .constructor = constructor, .destructor = destructor};
	struct sy_cache *cache;
	const char *error;

	if (!heap)
		heap = sy_heap_open(getenv("SLABYARD"), NULL, &error);
	need(heap != NULL, error);
	cache = sy_cache_create(heap, &config);
	need(cache != NULL, "no cache");
	return cache;
}

static NO_INLINE struct file *file_allocate_it(void)
{
	struct file *file;

	if (!files)
		files = create(sizeof(*file), construct, destruct);
	file = (struct file *)sy_alloc(files, 0);
	OPAQUE(file);
	need(file != NULL, "no memory");
	need(file->count == 0 && file->waiters.next == &file->waiters && !file->buffer, "an object is not constructed");
	return file;
}

static NO_INLINE void file_free_it(struct file *file)
{
	sy_free(files, file);
	NOT_LAST();
}

static void use_again(void)
{
	struct file *held[40];

	for (unsigned i = 0; i < 40; i++)
		held[i] = file_allocate_it();
	for (unsigned i = 0; i < 40; i++)
		file_free_it(held[i]);
}

#define CHANGED(id) BUG(id, STATE, "file_allocate_it file_free_it")

/* A count of references that is not back at 0. */
CHANGED(count_not_back)
{
	struct file *file = file_allocate_it();

	file->count++;
	expect_within(file, sizeof(*file));
	file_free_it(file);
	use_again();
}

/* A lock that is still held. */
CHANGED(lock_held)
{
	struct file *file = file_allocate_it();

	pthread_mutex_lock(&file->lock);
	expect_within(file, sizeof(*file));
	file_free_it(file);
	use_again();
}

/* A list that has an element. */
CHANGED(list_not_empty)
{
	static struct list waiter;
	struct file *file = file_allocate_it();

	waiter.next = waiter.previous = &file->waiters;
	file->waiters.next = file->waiters.previous = &waiter;
	expect_within(file, sizeof(*file));
	file_free_it(file);
	use_again();
}

/* A buffer that belongs to the object, freed but still pointed to. */
CHANGED(pointer_not_cleared)
{
	struct file *file = file_allocate_it();

	file->buffer = allocate_it(512);
	free_it(file->buffer);
	expect_within(file, sizeof(*file));
	file_free_it(file);
	use_again();
}

/* An object that was cleared, as if there were no constructor. */
CHANGED(cleared)
{
	struct file *file = file_allocate_it();

	memset(file, 0, sizeof(*file));
	expect_within(file, sizeof(*file));
	file_free_it(file);
	use_again();
}

/* A single bit of the magic number. */
CHANGED(bit_of_the_magic)
{
	struct file *file = file_allocate_it();

	file->magic ^= 0x100;
	expect_within(file, sizeof(*file));
	file_free_it(file);
	use_again();
}

/* The 30th of 40 objects, with the others right. */
CHANGED(one_of_many)
{
	struct file *held[40];

	for (unsigned i = 0; i < 40; i++) {
		held[i] = file_allocate_it();
		held[i]->count = 1;
	}
	for (unsigned i = 0; i < 40; i++) {
		held[i]->count = i == 30;
		if (i == 30)
			expect_within(held[i], sizeof(*held[i]));
		file_free_it(held[i]);
	}
	use_again();
}

static void *free_in_thread(void *object)
{
	file_free_it((struct file *)object);
	return NULL;
}

/* Freed by another thread than the one that changed it. */
CHANGED(freed_by_another_thread)
{
	struct file *file = file_allocate_it();

	file->count = -1;
	expect_within(file, sizeof(*file));
	in_a_thread(free_in_thread, file);
	use_again();
}

/* ---- No bug ----------------------------------------------------------------------------------------------------- */

/* All is put back: count, lock, list, pointer. The name may be anything. */
SILENT(restored)
{
	struct list waiter;

	for (unsigned round = 0; round < 100; round++) {
		struct file *file = file_allocate_it();

		file->count++;
		pthread_mutex_lock(&file->lock);
		file->waiters.next = file->waiters.previous = &waiter;
		file->buffer = allocate_it(100);
		strcpy(file->name, "a name that stays");
		free_it(file->buffer);
		file->buffer = NULL;
		file->waiters.next = file->waiters.previous = &file->waiters;
		pthread_mutex_unlock(&file->lock);
		file->count--;
		file_free_it(file);
	}
	use_again();
	need(sy_cache_destroy(files, NULL), "the cache has objects");
}

/* As many objects are destructed as were constructed. */
SILENT(as_often_destructed)
{
	for (unsigned round = 0; round < 5; round++)
		use_again();
	need(constructed > 0, "nothing was constructed");
	need(sy_cache_destroy(files, NULL), "the cache has objects");
	need(constructed == destructed, "not as many were destructed as constructed");
	sy_heap_close(heap);
}

/* Requests for zero memory of a cache without a constructor. */
SILENT(zero_without_a_constructor)
{
	struct sy_cache *plain = create(90, NULL, NULL);

	for (unsigned round = 0; round < 50; round++) {
		unsigned char *object = (unsigned char *)sy_alloc(plain, SY_ZERO);

		need(object != NULL, "no memory");
		for (unsigned i = 0; i < 90; i++)
			need(object[i] == 0, "the object is not zero");
		memset(object, 'z', 90);
		sy_free(plain, object);
	}
}

struct task {
	long number;
	char stack[120];
};

static void number_it(void *object, size_t size)
{
	static long last;

	(void)size;
	((struct task *)object)->number = ++last;
}

/* A constructor that gives each object a number of its own, which stays. */
SILENT(numbered_objects)
{
	struct sy_cache *tasks = create(sizeof(struct task), number_it, NULL);

	for (unsigned round = 0; round < 100; round++) {
		struct task *task = (struct task *)sy_alloc(tasks, 0);

		need(task && task->number > 0, "an object has no number");
		memset(task->stack, 't', sizeof(task->stack));
		sy_free(tasks, task);
	}
	need(sy_cache_destroy(tasks, NULL), "the cache has objects");
}

static void *use_files(void *unused)
{
	for (unsigned round = 0; round < 20; round++) {
		struct file *held[20];

		for (unsigned i = 0; i < 20; i++) {
			held[i] = file_allocate_it();
			held[i]->count = i;
		}
		for (unsigned i = 0; i < 20; i++) {
			held[i]->count = 0;
			file_free_it(held[i]);
		}
	}
	return unused;
}

/* Four threads share the cache and restore each object. */
SILENT(threads_that_restore)
{
	pthread_t threads[4];

	file_free_it(file_allocate_it());
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, use_files, NULL);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static struct list *head;

/* Objects linked by a member: only interior addresses lead to them. */
SILENT(linked_by_a_member)
{
	for (unsigned i = 0; i < 10; i++) {
		struct file *file = file_allocate_it();

		file->waiters.next = head;
		head = &file->waiters;
	}
}
