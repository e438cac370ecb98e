/* Names of the kernel's headers, each used once as kernel code uses it. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timer.h>

#include "check.h"

static void counters(void)
{
	atomic_t number = ATOMIC_INIT(6);
	atomic_long_t large = ATOMIC_LONG_INIT(LONG_MAX);
	int old = 5;
	unsigned long word = 7, was = 1;
	void *place = &number, *before = NULL;

	CHECK(!atomic_try_cmpxchg(&number, &old, 1) && old == 6);
	CHECK(atomic_try_cmpxchg_acquire(&number, &old, 7) && atomic_read_acquire(&number) == 7);
	atomic_andnot(3, &number);
	CHECK_EQUAL(atomic_fetch_or_relaxed(3, &number), 4);
	CHECK_EQUAL(atomic_fetch_andnot(4, &number), 7);
	atomic_xor(1, &number);
	atomic_set_release(&number, atomic_read(&number) + 40);
	CHECK_EQUAL(atomic_add_return_relaxed(1, &number), 43);
	CHECK_EQUAL(atomic_fetch_sub_release(3, &number), 43);
	CHECK_EQUAL(atomic_xchg_acquire(&number, -1), 40);
	CHECK(!atomic_inc_unless_negative(&number) && atomic_dec_unless_positive(&number) && atomic_read(&number) == -2);
	CHECK_EQUAL(atomic_cmpxchg_relaxed(&number, -2, 0), -2);
	CHECK(atomic_long_inc_unless_negative(&large) && atomic_long_read(&large) == LONG_MIN);
	CHECK(!try_cmpxchg(&word, &was, 8) && was == 7 && try_cmpxchg_release(&word, &was, 8) && word == 8);
	CHECK(!try_cmpxchg(&place, &before, NULL) && before == place && try_cmpxchg(&place, &before, NULL) && !place);
	CHECK_EQUAL(xchg_relaxed(&word, 9), 8);
	CHECK_EQUAL(cmpxchg_acquire(&word, 9, 10), 9);
}

static void numbers(void)
{
	static const __be32 constant = cpu_to_be32(0x01020304);
	const unsigned char *bytes = (const unsigned char *)&constant;
	__le16 small = cpu_to_le16(0xffff);
	__le64 large = cpu_to_le64(0x0102030405060708ULL);
	u8 byte;
	int number;
	u64 wide;

	CHECK(bytes[0] == 1 && bytes[3] == 4 && be32_to_cpu(constant) == 0x01020304 && be32_to_cpup(&constant) == 0x01020304);
	CHECK(*(unsigned char *)&large == 8 && le64_to_cpu(large) == 0x0102030405060708ULL);
	le16_add_cpu(&small, 2);
	CHECK(le16_to_cpu(small) == 1 && swab32(0x01020304) == 0x04030201);
	CHECK(umin(3U, 4) == 3 && umax((u64)3, 4U) == 4 && sizeof(umin((u8)1, 2U)) == 4);
	CHECK(in_range(5, 5, 1) && !in_range(6, 5, 1) && !in_range(4, 5, 1));
	CHECK(in_range(3U, UINT_MAX, 5U) && !in_range(3ULL, UINT_MAX, 5U));
	CHECK(!check_shl_overflow(3, 6, &byte) && byte == 192 && check_shl_overflow(3, 7, &byte) && check_shl_overflow(1, 8, &byte));
	CHECK(check_shl_overflow(1U, 31, &number) && !check_shl_overflow(1, 30, &number) && number == 1 << 30);
	CHECK(check_shl_overflow(-1, 1, &number) && check_shl_overflow(1, -1, &number) && check_shl_overflow(1, 64, &wide));
	CHECK(!check_shl_overflow((u32)1, 63U, &wide) && wide == (u64)1 << 63);
	CHECK(jiffies_delta_to_msecs(-5) == 0 && jiffies_delta_to_msecs((long)secs_to_jiffies(2)) == 2000);
}

static void texts(void)
{
	static const char text[] = "one two";
	char zeros[40] = "";

	CHECK(strnstr(text, "two", 7) == text + 4 && !strnstr(text, "two", 6) && !strnstr(text, "two", 2));
	CHECK(strnstr(text, "", 0) == text);
	CHECK(!strnstr(text, "twofold", 100) && mem_is_zero(zeros, sizeof(zeros)));
	zeros[39] = 1;
	CHECK(!mem_is_zero(zeros, sizeof(zeros)) && mem_is_zero(zeros, 39));
}

static void pages(void)
{
	struct page *page = alloc_page(GFP_KERNEL);
	char *address = page_address(page);

	CHECK(PAGE_ALIGNED(address) && !PAGE_ALIGNED(address + 1) && PAGE_ALIGN_DOWN((unsigned long)(address + 1)) == (unsigned long)address);
	CHECK(pfn_to_page(page_to_pfn(page)) == page && pfn_to_virt(virt_to_pfn(address + 5)) == address);
	CHECK(PFN_UP(PAGE_SIZE + 1) == 2 && PFN_DOWN(PAGE_SIZE + 1) == 1 && PFN_PHYS(PHYS_PFN(PAGE_SIZE)) == PAGE_SIZE);
	memalloc_noio_restore(memalloc_noio_save());
	__free_page(page);
}

static DECLARE_COMPLETION(runs);
static DECLARE_COMPLETION(may_end);

static void run_until_told(struct timer_list *timer)
{
	CHECK_EQUAL(try_to_del_timer_sync(timer), -1);
	complete(&runs);
	wait_for_completion(&may_end);
}

static void timers(void)
{
	DEFINE_TIMER(timer, run_until_told);

	CHECK_EQUAL(try_to_del_timer_sync(&timer), 0);
	mod_timer(&timer, jiffies + 1000 * HZ);
	CHECK_EQUAL(try_to_del_timer_sync(&timer), 1);
	CHECK(!timer_pending(&timer));
	mod_timer(&timer, jiffies);
	wait_for_completion(&runs);
	CHECK_EQUAL(try_to_del_timer_sync(&timer), -1);
	complete(&may_end);
	CHECK_EQUAL(del_timer_sync(&timer), 0);
	CHECK_EQUAL(try_to_del_timer_sync(&timer), 0);
}

int main(void)
{
	counters();
	numbers();
	texts();
	pages();
	timers();
	CHECK_TEXT(sy_heap_check(sy_kmem_heap()), NULL);
	return check_result();
}
