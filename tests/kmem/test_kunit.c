/* Tests in the kernel's own form (kunit/test.h): what holds is fine, what doesn't is told, and what a case allocates goes with it. */
#include <kunit/test.h>

#include "check.h"

static unsigned cases, exits;

static int begin(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, 100, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, test->priv);
	return 0;
}

static void end(struct kunit *test)
{
	KUNIT_EXPECT_NOT_NULL(test, test->priv);
	exits++;
}

static void holds(struct kunit *test)
{
	cases++;
	KUNIT_EXPECT_EQ(test, 2 + 2, 4);
	KUNIT_EXPECT_STREQ(test, "slab", "slab");
	KUNIT_EXPECT_PTR_NE_MSG(test, test->priv, NULL, "%s", "nothing");
	KUNIT_ASSERT_TRUE(test, list_empty(&(struct list_head)LIST_HEAD_INIT(*(struct list_head *)test->priv)) == 0);
}

static void fails(struct kunit *test)
{
	cases++;
	KUNIT_ASSERT_EQ_MSG(test, cases, 1000, "after %u", cases);
	cases += 100;
}

static const int values[] = { 3, 5 };

static void describe(const int *value, char *text)
{
	snprintf(text, KUNIT_PARAM_DESC_SIZE, "%d", *value);
}

KUNIT_ARRAY_PARAM(value, values, describe);

static void with_values(struct kunit *test)
{
	cases++;
	KUNIT_EXPECT_GT(test, *(const int *)test->param_value, 2);
}

static struct kunit_case fine_cases[] = { KUNIT_CASE(holds), KUNIT_CASE_PARAM(with_values, value_gen_params), { 0 } };
static struct kunit_case bad_cases[] = { KUNIT_CASE(fails), { 0 } };
static struct kunit_suite fine = { .name = "fine", .init = begin, .exit = end, .test_cases = fine_cases };
static struct kunit_suite bad = { .name = "bad", .test_cases = bad_cases };
static struct kunit_suite *const bad_alone[] = { &bad, NULL };

kunit_test_suite(fine);

int main(void)
{
	CHECK_EQUAL(init_module(), 0);
	CHECK(cases == 3 && exits == 3);
	CHECK(sy__kunit_run(bad_alone) != 0);
	CHECK_EQUAL(cases, 4);
	return check_result();
}
