/*
 * Kernel unit tests (kunit/test.h): the cases of suites one after the other, told on standard error as kernels do. A case that
 * can't go on jumps back to here.
 */
#include <slabyard/kernel/kunit/test.h>

#include <stdio.h>

struct resource {
	struct list_head link;
	void *object;
};

void sy__kunit_expect(struct kunit *test, bool holds, bool needed, const char *file, int line, const char *what,
                      const char *format, ...)
{
	va_list arguments;

	if (holds)
		return;
	fprintf(stderr, "    # %s: EXPECTATION FAILED at %s:%d: %s\n", test->name, file, line, what);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	if (*format)
		fputc('\n', stderr);
	__atomic_store_n(&test->failed, true, __ATOMIC_RELAXED);
	if (needed)
		longjmp(test->end, 1);
}

void sy__kunit_skip(struct kunit *test, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	test->skipped = true;
	longjmp(test->end, 1);
}

/* ---- What a case allocates ----------------------------------------------------------------------------------------- */

void *sy__kunit_kmalloc(struct kunit *test, size_t size, gfp_t flags)
{
	struct resource *resource = kmalloc(sizeof(*resource), GFP_KERNEL);

	if (!resource)
		return NULL;
	resource->object = kmalloc(size, flags);
	list_add(&resource->link, &test->resources);
	return resource->object;
}

static void let_go(struct resource *resource)
{
	list_del(&resource->link);
	kfree(resource->object);
	kfree(resource);
}

void sy__kunit_kfree(struct kunit *test, const void *object)
{
	struct resource *resource;

	list_for_each_entry(resource, &test->resources, link)
		if (resource->object == object) {
			let_go(resource);
			return;
		}
}

/* ---- Cases --------------------------------------------------------------------------------------------------------- */

static void run_inside(struct kunit *test, const struct kunit_suite *suite, const struct kunit_case *which)
{
	if (setjmp(test->end))
		return;
	if (suite->init && suite->init(test)) {
		test->failed = true;
		return;
	}
	which->run_case(test);
}

static bool run_once(const struct kunit_suite *suite, const struct kunit_case *which, const void *value)
{
	struct resource *resource, *next;
	struct kunit test = { .name = which->name, .param_value = value, .resources = LIST_HEAD_INIT(test.resources) };

	run_inside(&test, suite, which);
	if (suite->exit && !setjmp(test.end))
		suite->exit(&test);
	list_for_each_entry_safe(resource, next, &test.resources, link)
		let_go(resource);
	return !test.failed;
}

static bool run_case(const struct kunit_suite *suite, const struct kunit_case *which)
{
	char description[KUNIT_PARAM_DESC_SIZE] = "";
	const void *value = NULL;
	bool fine = true;

	if (!which->generate_params)
		return run_once(suite, which, NULL);
	while ((value = which->generate_params(value, description)) != NULL)
		if (!run_once(suite, which, value)) {
			fprintf(stderr, "    # %s: with %s\n", which->name, description);
			fine = false;
		}
	return fine;
}

static bool run_suite(struct kunit_suite *suite)
{
	bool fine = !suite->suite_init || !suite->suite_init(suite);
	unsigned number = 0;

	fprintf(stderr, "    # Subtest: %s\n", suite->name);
	for (struct kunit_case *which = suite->test_cases; fine && which->run_case; which++)
		number++;
	for (unsigned i = 0, count = number; i < count; i++) {
		bool so = run_case(suite, &suite->test_cases[i]);

		fprintf(stderr, "    %sok %u %s\n", so ? "" : "not ", i + 1, suite->test_cases[i].name);
		fine &= so;
	}
	if (suite->suite_exit)
		suite->suite_exit(suite);
	return fine;
}

int sy__kunit_run(struct kunit_suite *const *suites)
{
	unsigned number = 0;
	int wrong = 0;

	for (; suites[number]; number++) {
		bool fine = run_suite(suites[number]);

		fprintf(stderr, "%sok %u %s\n", fine ? "" : "not ", number + 1, suites[number]->name);
		wrong |= !fine;
	}
	return wrong;
}
