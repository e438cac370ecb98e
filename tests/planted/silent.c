/*
 * Programs without a bug, of which a report would be wrong. First those that end with objects that something still leads to, if
 * only a register; then correct programs that do what is hard for a checker.
 */
#include "planted.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <regex.h>
#include <search.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* ---- Something still leads to it -------------------------------------------------------------------------------- */

static void *volatile kept, **volatile kept_by; /* volatile: the compiler would leave out what nobody reads */
static __thread void *volatile kept_by_thread;

/* Static data. */
SILENT(in_static_data)
{
	kept = allocate_it(100);
}

/* A variable of a function. */
SILENT(in_a_static_variable_of_a_function)
{
	static char *lines[20];

	for (unsigned i = 0; i < 20; i++)
		lines[i] = (char *)allocate_it(10 * i);
	OPAQUE(lines[0]);
}

/* A variable of the thread that ends the program. */
SILENT(in_a_variable_of_the_thread)
{
	kept_by_thread = allocate_it(100);
}

/* An address within it, 8 bytes behind its start. */
SILENT(by_an_interior_address)
{
	kept = allocate_it(100) + 8;
}

/* The address of its last byte. */
SILENT(by_its_last_byte)
{
	kept = allocate_it(5000) + 4999;
}

/* An address within a large one, pages behind its start. */
SILENT(within_a_large_one)
{
	kept = allocate_it(2 * MIB) + MIB + 5;
}

struct node {
	struct node *next;
	void *data;
};

/* A list of which static data has the head, whose nodes have data. */
SILENT(a_list_and_its_data)
{
	static struct node *head;

	for (unsigned i = 0; i < 100; i++) {
		struct node *node = (struct node *)allocate_it(sizeof(*node));

		node->next = head;
		node->data = allocate_it(i);
		head = node;
	}
	OPAQUE(head);
}

/* A cycle, of which static data has a member. */
SILENT(a_cycle_that_is_held)
{
	struct node *one = (struct node *)allocate_it(sizeof(*one)), *two = (struct node *)allocate_it(sizeof(*two));

	one->next = two;
	two->next = one;
	one->data = two->data = NULL;
	kept = &two->data;
}

/* An object within a large object of 8 MiB. */
SILENT(in_a_large_object)
{
	kept_by = (void **)callocate_it(MIB, sizeof(void *));
	kept_by[MIB - 1] = allocate_it(50);
}

/* Memory that the program has mapped itself, as arenas of interpreters are. */
SILENT(in_mapped_memory)
{
	kept_by = (void **)mmap(NULL, 64 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(kept_by != MAP_FAILED, "no memory");
	kept_by[1000] = allocate_it(40);
}

static void (*volatile leave)(int) = exit; /* called by this, it may return as far as the compiler knows */

/* A register that calls save, while the program calls exit. */
SILENT(in_a_register)
{
	unsigned char *object = allocate_it(60);

	OPAQUE(object);
	scrub();
	leave(0);
	OPAQUE(object);
}

/* The stack of the function that calls exit. */
SILENT(on_the_stack)
{
	void *objects[30];

	for (unsigned i = 0; i < 30; i++)
		objects[i] = allocate_it(70);
	__asm__ volatile("" : : "r"(objects) : "memory");
	leave(0);
	__asm__ volatile("" : : "r"(objects) : "memory");
}

static pthread_barrier_t ready;

static void *spin(void *unused)
{
	unsigned char *object = allocate_it(60);

	pthread_barrier_wait(&ready);
	for (;;)
		OPAQUE(object);
	return unused;
}

/* A register of a thread that runs when the program ends. */
SILENT(in_a_register_of_a_running_thread)
{
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&thread, NULL, spin, NULL);
	pthread_barrier_wait(&ready);
}

static void *sleep_on_it(void *unused)
{
	void *objects[10];

	for (unsigned i = 0; i < 10; i++)
		objects[i] = allocate_it(200);
	__asm__ volatile("" : : "r"(objects) : "memory");
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	__asm__ volatile("" : : "r"(objects) : "memory");
	return unused;
}

/* The stacks of threads that sleep when the program ends. */
SILENT(on_the_stacks_of_sleeping_threads)
{
	pthread_t threads[3];

	pthread_barrier_init(&ready, NULL, 4);
	for (unsigned i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, sleep_on_it, NULL);
	pthread_barrier_wait(&ready);
}

static void *keep_and_sleep(void *unused)
{
	kept_by_thread = allocate_it(48);
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	return unused;
}

/* A variable of a thread that sleeps when the program ends. */
SILENT(in_a_variable_of_a_sleeping_thread)
{
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&thread, NULL, keep_and_sleep, NULL);
	pthread_barrier_wait(&ready);
}

static void *end_program(void *unused)
{
	exit(0);
	return unused;
}

/* The stack of the first thread, when another one ends the program. */
SILENT(on_the_first_stack_when_a_thread_exits)
{
	unsigned char *object = allocate_it(90);
	pthread_t thread;

	OPAQUE(object);
	pthread_create(&thread, NULL, end_program, NULL);
	pthread_join(thread, NULL);
	OPAQUE(object);
}

/* pthread_setspecific of the first thread. */
SILENT(in_a_key_of_the_thread)
{
	pthread_key_t key;

	pthread_key_create(&key, free);
	pthread_setspecific(key, allocate_it(30));
}

/* What the C library keeps: the environment, the locale, a stream's buffer. */
SILENT(in_the_c_library)
{
	char *buffer = (char *)allocate_it(BUFSIZ), *variable = (char *)allocate_it(32);
	FILE *null = fopen("/dev/null", "w");

	need(null != NULL, "no /dev/null");
	strcpy(variable, "PLANTED=in the environment");
	putenv(variable);
	setenv("PLANTED_TOO", "in the environment", 1);
	setlocale(LC_ALL, "C.UTF-8");
	setvbuf(null, buffer, _IOFBF, BUFSIZ);
	fprintf(null, "a line\n");
}

static int compare(const void *one, const void *two)
{
	return strcmp((const char *)one, (const char *)two);
}

/* A tree of tsearch, whose pointers have a bit for the colour. */
SILENT(by_pointers_with_a_bit)
{
	static void *root;

	for (unsigned i = 0; i < 50; i++) {
		char *key = (char *)allocate_it(16);

		snprintf(key, 16, "%u", i * 7919 % 50);
		tsearch(key, &root, compare);
	}
}

/* ---- It does what is right -------------------------------------------------------------------------------------- */

/* Objects of all sizes, written to the last byte, made larger, smaller, and freed. */
SILENT(all_sizes)
{
	for (size_t size = 0; size < 3 * MIB; size += 1 + size / 4) {
		unsigned char *object = allocate_it(size), *zero = callocate_it(1, size);

		memset(object, 's', size);
		for (size_t i = 0; i < size; i += 1 + size / 100)
			need(zero[i] == 0, "calloc gave what is not zero");
		object = reallocate_it(object, size * 2 + 1);
		need(size == 0 || (object[0] == 's' && object[size - 1] == 's'), "realloc lost what was there");
		memset(object, 's', size * 2 + 1);
		object = reallocate_it(object, size / 2 + 1);
		need(size == 0 || object[size / 2] == 's', "realloc lost what was there");
		free_it(object);
		free_it(zero);
	}
}

/* Objects with every alignment, written to the last byte. */
SILENT(all_alignments)
{
	for (size_t align = sizeof(void *); align <= 64 * KIB; align *= 2)
		for (size_t size = 1; size < 20000; size = size * 5 + 1) {
			void *object = NULL;

			need(posix_memalign(&object, align, size) == 0 && (uintptr_t)object % align == 0, "not aligned");
			memset(object, 'a', size);
			object = reallocate_it(object, size + 100);
			memset(object, 'a', size + 100);
			free_it(object);
		}
	free_it(memalign(32, 100));
	free_it(valloc(100));
	free_it(pvalloc(100));
}

/* All of malloc_usable_size is used. */
SILENT(usable_size_used)
{
	for (size_t size = 0; size < 100000; size += 1 + size / 2) {
		unsigned char *object = allocate_it(size);

		need(malloc_usable_size(object) >= size, "less is usable than was asked for");
		memset(object, 'u', malloc_usable_size(object));
		free_it(object);
	}
}

/* What malloc refuses; realloc of NULL and to nothing; free of NULL; errno stays. */
SILENT(odd_requests)
{
	volatile size_t huge = SIZE_MAX - 100;
	void *object = malloc(huge);

	need(object == NULL && calloc(huge, 16) == NULL, "malloc gave what there is not");
	object = realloc(NULL, 64);
	need(object && realloc(object, huge) == NULL, "realloc gave what there is not");
	memset(object, 'o', 64);
	errno = EDOM;
	free_it(object);
	free_it(NULL);
	need(errno == EDOM, "free has changed errno");
	object = realloc(allocate_it(24), 0);
	free_it(object);
	free_it(malloc(0));
}

/* Thousands of objects live at once and are freed in another order. */
SILENT(many_objects)
{
	static unsigned char *objects[5003];

	for (unsigned i = 0; i < 5003; i++) {
		objects[i] = allocate_it(i % 300 + 1);
		objects[i][0] = objects[i][i % 300] = (unsigned char)i;
	}
	for (unsigned i = 0; i < 5003; i++) {
		unsigned char **object = &objects[i * 1009 % 5003];

		need(**object == (unsigned char)(i * 1009 % 5003), "an object was changed");
		free_it(*object);
		*object = NULL;
	}
}

static unsigned char *volatile handed[400];

static void *make(void *unused)
{
	for (unsigned i = 0; i < 400; i++) {
		unsigned char *object = allocate_it(i + 1);

		memset(object, (int)i, i + 1);
		__atomic_store_n(&handed[i], object, __ATOMIC_RELEASE);
	}
	return unused;
}

static void *take(void *unused)
{
	for (unsigned i = 0; i < 400; i++) {
		unsigned char *object;

		while (!(object = __atomic_load_n(&handed[i], __ATOMIC_ACQUIRE)))
			usleep(10);
		need(object[i] == (unsigned char)i, "an object was changed");
		handed[i] = NULL;
		free_it(object);
	}
	return unused;
}

/* One thread allocates, another frees. */
SILENT(made_by_one_thread_freed_by_another)
{
	pthread_t threads[2];

	pthread_create(&threads[0], NULL, make, NULL);
	pthread_create(&threads[1], NULL, take, NULL);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void *use_memory(void *seed)
{
	unsigned char *objects[50] = {NULL};
	unsigned random = (unsigned)(uintptr_t)seed;

	for (unsigned i = 0; i < 1500; i++) {
		unsigned char **place = &objects[(random = random * 1103515245 + 12345) / 65536 % 50];
		size_t size = random / 65536 % 1000;

		if (*place && i % 3 == 0) {
			*place = reallocate_it(*place, size + 1);
		} else {
			free_it(*place);
			*place = allocate_it(size + 1);
		}
		memset(*place, (int)i, size + 1);
	}
	for (unsigned i = 0; i < 50; i++)
		free_it(objects[i]);
	return NULL;
}

/* Four threads, and four others after them, each with objects of its own. */
SILENT(threads_come_and_go)
{
	pthread_t threads[4];

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, use_memory, (void *)(uintptr_t)(i + 1));
		for (unsigned i = 0; i < 4; i++)
			pthread_join(threads[i], NULL);
	}
}

static void child_ends_well(pid_t child)
{
	int status = -1;

	need(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child failed");
}

/* A child frees what its parent has allocated, and so does the parent. */
SILENT(forked)
{
	unsigned char *objects[20];
	pid_t child;

	for (unsigned i = 0; i < 20; i++)
		objects[i] = allocate_it(40);
	child = fork();
	for (unsigned i = 0; i < 20; i++)
		free_it(objects[i]);
	press(40, 100);
	if (child == 0)
		exit(0);
	child_ends_well(child);
}

/* A program with threads that allocate has a child, which ends by _exit. */
SILENT(forked_with_threads)
{
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, use_memory, (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < 3; i++) {
		pid_t child = fork();

		if (child == 0) {
			press(64, 100);
			_exit(0);
		}
		child_ends_well(child);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* A library is opened that keeps memory, gives some to the program, and is closed. */
SILENT(library_opened)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 20);
	void *library, *(*take_some)(size_t);
	unsigned char *object;

	need(length > 0, "no /proc");
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "plugin.so");
	library = dlopen(path, RTLD_NOW);
	need(library != NULL, "plugin.so is not beside the program");
	*(void **)&take_some = dlsym(library, "planted_take");
	object = (unsigned char *)take_some(111);
	memset(object, 'p', 111);
	dlclose(library);
	free_it(object);
	need(dlopen(path, RTLD_NOW) != NULL, "plugin.so can't be opened twice"); /* and stays */
}

static void free_kept(void)
{
	free_it(kept);
	kept = NULL;
}

/* A function of atexit frees what the program has kept. */
SILENT(freed_at_exit)
{
	kept = allocate_it(77);
	atexit(free_kept);
}

/* What the C library allocates for a program, and the program frees. */
SILENT(given_by_the_c_library)
{
	char *line = NULL, *made = NULL, *copy = strdup("a copy"), *directory = getcwd(NULL, 0);
	size_t room = 0;
	FILE *self = fopen("/proc/self/maps", "r"), *memory;
	regex_t pattern;

	need(self && copy && directory, "no memory");
	while (getline(&line, &room, self) > 0)
		;
	fclose(self);
	need(asprintf(&made, "%s in %s", copy, directory) > 0, "no memory");
	need(regcomp(&pattern, "^(a|b)+ .* (in|of) /", REG_EXTENDED) == 0, "no pattern");
	regexec(&pattern, made, 0, NULL, 0);
	regfree(&pattern);
	free_it(line);
	free_it(made);
	free_it(copy);
	free_it(directory);
	memory = open_memstream(&made, &room);
	for (unsigned i = 0; i < 2000; i++)
		fprintf(memory, "%u ", i);
	fclose(memory);
	free_it(made);
}

/* Another program is run. */
SILENT(another_program)
{
	need(system("true") == 0, "true failed");
}

/* Memory goes back when it is asked to. */
SILENT(trimmed)
{
	press(3000, 300);
	malloc_trim(0);
	press(3000, 300);
	free_it(allocate_it(MIB));
	malloc_trim(0);
}

/* The kernel alone knows where the stack for signal handlers is. */
SILENT(alternate_signal_stack)
{
	stack_t alternate = { .ss_sp = allocate_it(64 << 10), .ss_size = 64 << 10 };

	sigaltstack(&alternate, NULL);
}
