/* <kunit/test.h> for kernel code that is compiled into a program: suites of cases, told as TAP. A program calls init_module, which runs them all; not 0: something was not as expected. */
#ifndef SLABYARD_KERNEL_KUNIT_TEST_H
#define SLABYARD_KERNEL_KUNIT_TEST_H

#pragma GCC system_header

#include "../linux/kernel.h"
#include "../linux/list.h"
#include "../linux/module.h"
#include "../linux/slab.h"
#include "../linux/string.h"

#include <setjmp.h>

struct kunit;

struct kunit_case {
	void (*run_case)(struct kunit *);
	const char *name;
	const void *(*generate_params)(const void *last, char *description);
};

struct kunit_suite {
	char name[256];
	int (*suite_init)(struct kunit_suite *);
	void (*suite_exit)(struct kunit_suite *);
	int (*init)(struct kunit *);
	void (*exit)(struct kunit *);
	struct kunit_case *test_cases;
};

/* A case that runs. What it allocates by these calls is freed after it. */
struct kunit {
	void *priv;
	const void *param_value;
	const char *name;
	bool failed, skipped;
	struct list_head resources;
	jmp_buf end;
};

#define KUNIT_PARAM_DESC_SIZE 128
#define KUNIT_CASE(run) { .run_case = (run), .name = #run }
#define KUNIT_CASE_SLOW(run) KUNIT_CASE(run)
#define KUNIT_CASE_PARAM(run, generate) { .run_case = (run), .name = #run, .generate_params = (generate) }
#define KUNIT_ARRAY_PARAM(label, array, describe) \
	static const void *label##_gen_params(const void *last, char *description) \
	{ \
		__typeof__((array)[0]) const *next = last ? (__typeof__((array)[0]) const *)last + 1 : (array); \
		void (*sy__describe)(__typeof__((array)[0]) const *, char *) = (void (*)(__typeof__((array)[0]) const *, char *))(describe); \
		if (next - (array) >= (long)ARRAY_SIZE(array)) \
			return NULL; \
		if (sy__describe) \
			sy__describe(next, description); \
		return next; \
	} \
	extern int sy__exported

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

int sy__kunit_run(struct kunit_suite *const *suites);
void sy__kunit_expect(struct kunit *, bool holds, bool needed, const char *file, int line, const char *what, const char *format, ...)
	__attribute__((__format__(__printf__, 7, 8)));
void sy__kunit_skip(struct kunit *, const char *format, ...) __attribute__((__format__(__printf__, 2, 3), __noreturn__));
void *sy__kunit_kmalloc(struct kunit *, size_t, gfp_t);
void sy__kunit_kfree(struct kunit *, const void *);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define kunit_test_suites(...) \
	static struct kunit_suite *const sy__kunit_suites[] = { __VA_ARGS__, NULL }; \
	static int sy__kunit_start(void) { return sy__kunit_run(sy__kunit_suites); } \
	module_init(sy__kunit_start)
#define kunit_test_suite(suite) kunit_test_suites(&suite)

#define kunit_printk(level, test, format, ...) printk("    # %s: " format, (test)->name, ##__VA_ARGS__)
#define kunit_info(test, ...) kunit_printk(KERN_INFO, test, __VA_ARGS__)
#define kunit_warn(test, ...) kunit_printk(KERN_WARNING, test, __VA_ARGS__)
#define kunit_err(test, ...) kunit_printk(KERN_ERR, test, __VA_ARGS__)
#define kunit_log(level, test, ...) kunit_printk(level, test, __VA_ARGS__)
#define kunit_skip(test, ...) sy__kunit_skip(test, __VA_ARGS__)
#define kunit_mark_skipped(test, ...) ((test)->skipped = true)

static inline void *kunit_kmalloc(struct kunit *test, size_t size, gfp_t flags) { return sy__kunit_kmalloc(test, size, flags); }
static inline void *kunit_kzalloc(struct kunit *test, size_t size, gfp_t flags) { return sy__kunit_kmalloc(test, size, flags | __GFP_ZERO); }
static inline void kunit_kfree(struct kunit *test, const void *object) { sy__kunit_kfree(test, object); }

static inline void *kunit_kmalloc_array(struct kunit *test, size_t count, size_t size, gfp_t flags)
{
	return sy__kunit_kmalloc(test, sy__size_mul(count, size), flags);
}

static inline void *kunit_kcalloc(struct kunit *test, size_t count, size_t size, gfp_t flags)
{
	return kunit_kmalloc_array(test, count, size, flags | __GFP_ZERO);
}

#define SY__KUNIT(test, needed, holds, what, ...) \
	sy__kunit_expect(test, holds, needed, __FILE__, __LINE__, what, __VA_ARGS__)
#define SY__KUNIT_CMP(test, needed, a, than, b, ...) \
	do { \
		const __typeof__(a) sy__left = (a); \
		const __typeof__(b) sy__right = (b); \
		SY__KUNIT(test, needed, sy__left than sy__right, #a " " #than " " #b, __VA_ARGS__); \
	} while (0)
#define SY__KUNIT_STR(test, needed, a, than, b, ...) SY__KUNIT(test, needed, strcmp(a, b) than 0, #a " " #than " " #b, __VA_ARGS__)
#define SY__KUNIT_MEM(test, needed, a, than, b, size, ...) \
	SY__KUNIT(test, needed, memcmp(a, b, size) than 0, #a " " #than " " #b, __VA_ARGS__)
#define KUNIT_FAIL(test, ...) SY__KUNIT(test, false, false, "never", __VA_ARGS__)
#define KUNIT_FAIL_AND_ABORT(test, ...) SY__KUNIT(test, true, false, "never", __VA_ARGS__)
#define KUNIT_SUCCEED(test) ((void)(test))
#define KUNIT_EXPECT_TRUE(test, condition) SY__KUNIT(test, false, !!(condition), #condition, "")
#define KUNIT_EXPECT_TRUE_MSG(test, condition, ...) SY__KUNIT(test, false, !!(condition), #condition, __VA_ARGS__)
#define KUNIT_EXPECT_FALSE(test, condition) SY__KUNIT(test, false, !(condition), "!" #condition, "")
#define KUNIT_EXPECT_FALSE_MSG(test, condition, ...) SY__KUNIT(test, false, !(condition), "!" #condition, __VA_ARGS__)
#define KUNIT_EXPECT_NULL(test, pointer) SY__KUNIT(test, false, !(pointer), #pointer " is NULL", "")
#define KUNIT_EXPECT_NOT_NULL(test, pointer) SY__KUNIT(test, false, (pointer) != NULL, #pointer " is not NULL", "")
#define KUNIT_EXPECT_NULL_MSG(test, pointer, ...) SY__KUNIT(test, false, !(pointer), #pointer " is NULL", __VA_ARGS__)
#define KUNIT_EXPECT_NOT_NULL_MSG(test, pointer, ...) SY__KUNIT(test, false, (pointer) != NULL, #pointer " is not NULL", __VA_ARGS__)
#define KUNIT_EXPECT_NOT_ERR_OR_NULL(test, pointer) SY__KUNIT(test, false, !IS_ERR_OR_NULL(pointer), #pointer " is no error", "")
#define KUNIT_EXPECT_NOT_ERR_OR_NULL_MSG(test, pointer, ...) \
	SY__KUNIT(test, false, !IS_ERR_OR_NULL(pointer), #pointer " is no error", __VA_ARGS__)
#define KUNIT_EXPECT_EQ(test, a, b) SY__KUNIT_CMP(test, false, a, ==, b, "")
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_NE(test, a, b) SY__KUNIT_CMP(test, false, a, !=, b, "")
#define KUNIT_EXPECT_NE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_LT(test, a, b) SY__KUNIT_CMP(test, false, a, <, b, "")
#define KUNIT_EXPECT_LT_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, <, b, __VA_ARGS__)
#define KUNIT_EXPECT_LE(test, a, b) SY__KUNIT_CMP(test, false, a, <=, b, "")
#define KUNIT_EXPECT_LE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, <=, b, __VA_ARGS__)
#define KUNIT_EXPECT_GT(test, a, b) SY__KUNIT_CMP(test, false, a, >, b, "")
#define KUNIT_EXPECT_GT_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, >, b, __VA_ARGS__)
#define KUNIT_EXPECT_GE(test, a, b) SY__KUNIT_CMP(test, false, a, >=, b, "")
#define KUNIT_EXPECT_GE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, >=, b, __VA_ARGS__)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) SY__KUNIT_CMP(test, false, a, ==, b, "")
#define KUNIT_EXPECT_PTR_EQ_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_PTR_NE(test, a, b) SY__KUNIT_CMP(test, false, a, !=, b, "")
#define KUNIT_EXPECT_PTR_NE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, false, a, !=, b, __VA_ARGS__)
#define KUNIT_EXPECT_STREQ(test, a, b) SY__KUNIT_STR(test, false, a, ==, b, "")
#define KUNIT_EXPECT_STREQ_MSG(test, a, b, ...) SY__KUNIT_STR(test, false, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_STRNEQ(test, a, b) SY__KUNIT_STR(test, false, a, !=, b, "")
#define KUNIT_EXPECT_MEMEQ(test, a, b, size) SY__KUNIT_MEM(test, false, a, ==, b, size, "")
#define KUNIT_EXPECT_MEMNEQ(test, a, b, size) SY__KUNIT_MEM(test, false, a, !=, b, size, "")
#define KUNIT_ASSERT_TRUE(test, condition) SY__KUNIT(test, true, !!(condition), #condition, "")
#define KUNIT_ASSERT_TRUE_MSG(test, condition, ...) SY__KUNIT(test, true, !!(condition), #condition, __VA_ARGS__)
#define KUNIT_ASSERT_FALSE(test, condition) SY__KUNIT(test, true, !(condition), "!" #condition, "")
#define KUNIT_ASSERT_FALSE_MSG(test, condition, ...) SY__KUNIT(test, true, !(condition), "!" #condition, __VA_ARGS__)
#define KUNIT_ASSERT_NULL(test, pointer) SY__KUNIT(test, true, !(pointer), #pointer " is NULL", "")
#define KUNIT_ASSERT_NOT_NULL(test, pointer) SY__KUNIT(test, true, (pointer) != NULL, #pointer " is not NULL", "")
#define KUNIT_ASSERT_NULL_MSG(test, pointer, ...) SY__KUNIT(test, true, !(pointer), #pointer " is NULL", __VA_ARGS__)
#define KUNIT_ASSERT_NOT_NULL_MSG(test, pointer, ...) SY__KUNIT(test, true, (pointer) != NULL, #pointer " is not NULL", __VA_ARGS__)
#define KUNIT_ASSERT_NOT_ERR_OR_NULL(test, pointer) SY__KUNIT(test, true, !IS_ERR_OR_NULL(pointer), #pointer " is no error", "")
#define KUNIT_ASSERT_NOT_ERR_OR_NULL_MSG(test, pointer, ...) \
	SY__KUNIT(test, true, !IS_ERR_OR_NULL(pointer), #pointer " is no error", __VA_ARGS__)
#define KUNIT_ASSERT_EQ(test, a, b) SY__KUNIT_CMP(test, true, a, ==, b, "")
#define KUNIT_ASSERT_EQ_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_NE(test, a, b) SY__KUNIT_CMP(test, true, a, !=, b, "")
#define KUNIT_ASSERT_NE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, !=, b, __VA_ARGS__)
#define KUNIT_ASSERT_LT(test, a, b) SY__KUNIT_CMP(test, true, a, <, b, "")
#define KUNIT_ASSERT_LT_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, <, b, __VA_ARGS__)
#define KUNIT_ASSERT_LE(test, a, b) SY__KUNIT_CMP(test, true, a, <=, b, "")
#define KUNIT_ASSERT_LE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, <=, b, __VA_ARGS__)
#define KUNIT_ASSERT_GT(test, a, b) SY__KUNIT_CMP(test, true, a, >, b, "")
#define KUNIT_ASSERT_GT_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, >, b, __VA_ARGS__)
#define KUNIT_ASSERT_GE(test, a, b) SY__KUNIT_CMP(test, true, a, >=, b, "")
#define KUNIT_ASSERT_GE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, >=, b, __VA_ARGS__)
#define KUNIT_ASSERT_PTR_EQ(test, a, b) SY__KUNIT_CMP(test, true, a, ==, b, "")
#define KUNIT_ASSERT_PTR_EQ_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_PTR_NE(test, a, b) SY__KUNIT_CMP(test, true, a, !=, b, "")
#define KUNIT_ASSERT_PTR_NE_MSG(test, a, b, ...) SY__KUNIT_CMP(test, true, a, !=, b, __VA_ARGS__)
#define KUNIT_ASSERT_STREQ(test, a, b) SY__KUNIT_STR(test, true, a, ==, b, "")
#define KUNIT_ASSERT_STREQ_MSG(test, a, b, ...) SY__KUNIT_STR(test, true, a, ==, b, __VA_ARGS__)
#define KUNIT_ASSERT_STRNEQ(test, a, b) SY__KUNIT_STR(test, true, a, !=, b, "")
#define KUNIT_ASSERT_MEMEQ(test, a, b, size) SY__KUNIT_MEM(test, true, a, ==, b, size, "")
#define KUNIT_ASSERT_MEMNEQ(test, a, b, size) SY__KUNIT_MEM(test, true, a, !=, b, size, "")

#endif
