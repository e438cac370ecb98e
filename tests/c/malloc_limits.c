/*
 * A limit on its addresses that a program sets itself leaves room for its own mappings, for threads, and for objects of any
 * size. It can be raised again, and the limit counts only if this process set it. An object larger than what the heap has left
 * finds room while the heap does not need it, and the heap gets it back afterwards. A thread that is to be cancelled goes
 * through all of that unharmed.
 */
#define _GNU_SOURCE
#include "malloc_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "malloc/parts.h"

#define MIB ((size_t)1 << 20)
#define PIECE ((size_t)24 << 10) /* always of the heap, and untouched, so that it takes no memory */
#define MOST 70000u
#define FORKS 100u
#define DEADLOCK_SECONDS 30u

static void *pieces[MOST];

static void set_limit(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	CHECK_EQUAL(setrlimit(RLIMIT_AS, &limit), 0);
}

static void check_heap(void)
{
	CHECK_TEXT(sy_heap_check(sy__process_heap()), NULL);
}

static unsigned take_pieces(void)
{
	unsigned count = 0;

	while (count < MOST && (pieces[count] = malloc(PIECE)))
		count++;
	return count;
}

static void give_pieces(unsigned count)
{
	while (count)
		free(pieces[--count]);
}

static void *allocate(void *size)
{
	void *object = malloc(*(size_t *)size);

	CHECK(object != NULL);
	free(object);
	return NULL;
}

static void run_thread(void)
{
	pthread_t thread;
	size_t size = 100;
	int failed = pthread_create(&thread, NULL, allocate, &size);

	CHECK_EQUAL(failed, 0);
	if (!failed)
		CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

/* More of the stack than the program has used till now. */
static __attribute__((noinline)) void use_stack(void)
{
	volatile char deep[256 << 10];

	for (size_t at = sizeof(deep); at; at -= 4 << 10)
		deep[at - 1] = 1;
}

/* What a program has beside the heap. */
static void use_rest(size_t bytes)
{
	void *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *large = malloc(bytes);

	CHECK(own != MAP_FAILED);
	CHECK(large != NULL);
	if (own == MAP_FAILED || !large)
		return;
	memset(large, 1, bytes);
	run_thread();
	free(large);
	CHECK_EQUAL(munmap(own, bytes), 0);
}

/* Takes objects until the heap is full, and frees them. Then there is room for a large object; what lived before is
 * unharmed. */
static void fill_up(size_t least)
{
	char *before = malloc(1000);
	unsigned count;
	void *own;

	memset(before, 7, 1000);
	count = take_pieces();
	use_stack();
	CHECK(count < MOST);
	CHECK(count * PIECE >= least);
	CHECK_EQUAL(errno, ENOMEM);
	check_heap();
	for (unsigned i = 0; i < count; i += 100)
		memset(pieces[i], 1, PIECE);
	give_pieces(count);
	own = malloc(40 * MIB);
	CHECK(own != NULL);
	free(own);
	check_heap();
	CHECK_BYTES(before, 7, 1000);
	free(before);
}

/* An object of more than half of what there is, written to at both ends. */
static void *check_large(void *object, size_t bytes)
{
	CHECK(object != NULL);
	if (object)
		((char *)object)[0] = ((char *)object)[bytes - 1] = 1;
	return object;
}

static void take_from_heap(size_t bytes)
{
	void *aligned = NULL, *object = check_large(malloc(bytes), bytes);

	check_heap();
	run_thread(); /* finds room for its stack */
	free(object);
	CHECK_EQUAL(posix_memalign(&aligned, 2 * MIB, bytes), 0);
	free(check_large(aligned, bytes));

	object = check_large(realloc(check_large(malloc(bytes / 2), bytes / 2), bytes), bytes);
	CHECK(!object || ((char *)object)[bytes / 2 - 1] == 1);
	errno = 0;
	CHECK(malloc(bytes) == NULL); /* there is no second one, */
	CHECK_EQUAL(errno, ENOMEM);
	allocate(&(size_t){ PIECE }); /* but small ones */
	free(object);
	check_heap();
}

static void wait_for(pid_t child)
{
	int status = 1;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK_EQUAL(status, 0);
}

/* A child of fork has a heap and a limit of its own. */
static void fork_limited(void)
{
	pid_t child = fork();

	if (child == 0) {
		set_limit(400 * MIB);
		use_rest(64 * MIB);
		check_heap();
		_exit(check_failures != 0);
	}
	wait_for(child);
}

static void fork_with_large_objects(void)
{
	pid_t child = fork();

	if (child == 0) {
		set_limit(400 * MIB);
		take_from_heap(256 * MIB);
		fill_up(100 * MIB);
		take_from_heap(340 * MIB); /* which leaves nothing more than what it needs itself */
		_exit(check_failures != 0);
	}
	wait_for(child);
}

/* Finding room takes no file descriptor either. */
static void limited_without_files(void)
{
	struct rlimit none = { 0, RLIM_INFINITY };
	pid_t child = fork();

	if (child == 0) {
		set_limit(400 * MIB);
		CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &none), 0);
		none.rlim_cur = 0;
		CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
		take_from_heap(300 * MIB);
		fill_up(100 * MIB);
		use_rest(64 * MIB);
		_exit(check_failures != 0);
	}
	wait_for(child);
}

static atomic_bool forks_done;

static void *ask_for_room(void *bytes)
{
	while (!atomic_load(&forks_done))
		free(malloc(*(size_t *)bytes));
	return NULL;
}

/* A child does not wait for its parent's threads, which were making room. */
static void fork_while_room_is_made(void)
{
	size_t bytes = 300 * MIB;
	pid_t child = fork();
	pthread_t threads[2];

	if (child) {
		wait_for(child);
		return;
	}
	set_limit(400 * MIB);
	for (unsigned i = 0; i < 2; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, ask_for_room, &bytes), 0);
	for (unsigned i = 0; i < FORKS && !check_failures; i++) {
		child = fork();
		if (child == 0) {
			alarm(DEADLOCK_SECONDS);
			free(malloc(bytes));
			_exit(0);
		}
		wait_for(child);
	}
	atomic_store(&forks_done, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	_exit(check_failures != 0);
}

/* Makes every call that has the heap look at limits, while the thread is to be cancelled. */
static void *work_on(void *nothing)
{
	const struct rlimit limit = { 400 * MIB, RLIM_INFINITY };
	void *object, *moved;

	(void)nothing;
	pthread_cancel(pthread_self());
	(void)setrlimit(RLIMIT_AS, &limit);
	free(malloc(300 * MIB));
	give_pieces(take_pieces());
	for (size_t bytes = MIB; bytes < 400 * MIB; bytes *= 2) {
		object = malloc(bytes);
		moved = realloc(object, 2 * bytes);
		free(moved ? moved : object);
	}
	malloc_trim(0);
	malloc_stats();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return pieces;
}

static void cancel_limited(void)
{
	pid_t child = fork();
	pthread_t thread;
	void *result = NULL;

	if (child == 0) {
		alarm(DEADLOCK_SECONDS);
		CHECK_EQUAL(pthread_create(&thread, NULL, work_on, NULL), 0);
		pthread_join(thread, &result);
		CHECK(result == pieces);
		use_rest(64 * MIB);
		check_heap();
		_exit(check_failures != 0);
	}
	wait_for(child);
}

/* A child of vfork has its parent's heap. */
static void vfork_limited(void)
{
	const struct rlimit limit = { 64 * MIB, RLIM_INFINITY };
	pid_t child = vfork();

	if (child == 0) {
		(void)prlimit(0, RLIMIT_AS, &limit, NULL);
		_exit(0);
	}
	wait_for(child);
}

int main(void)
{
	struct rlimit before;
	unsigned count;

	CHECK_EQUAL(prlimit(0, RLIMIT_AS, NULL, &before), 0);
	fork_limited();
	fork_with_large_objects();
	limited_without_files();
	fork_while_room_is_made();
	vfork_limited();
	cancel_limited();
	set_limit(1024 * MIB);
	use_rest(200 * MIB);
	fill_up(300 * MIB);
	set_limit(RLIM_INFINITY);
	count = take_pieces(); /* more than a GiB */
	CHECK_EQUAL(count, MOST);
	check_heap();

	set_limit(3072 * MIB);
	use_rest(300 * MIB);
	check_heap();
	give_pieces(count);
	set_limit(RLIM_INFINITY);
	check_heap();

	errno = 0;
	CHECK_EQUAL(setrlimit((__rlimit_resource_t)99, &before), -1);
	CHECK_EQUAL(errno, EINVAL);
	return check_result();
}
