/*
 * The importer's passes in one process: lines that kernels and tools of many versions print, lines that nobody prints, and
 * captures that contradict themselves. Random captures draw from few addresses and pages, so that everything collides;
 * what they must not do is crash, leak, or trip a sanitizer, and what is emitted must add up.
 */
#include "check.h"
#include "import/import.h"
#include "import/values.h"

#include <unistd.h>

static struct scan scan_of(const char *text)
{
	struct scan scan = {0};
	int ends[2];
	CHECK(pipe(ends) == 0);
	/* The longest text here fits a pipe's buffer. */
	CHECK(write(ends[1], text, strlen(text)) == (ssize_t)strlen(text));
	close(ends[1]);
	scan.fd = ends[0];
	scan_input(&scan);
	close(ends[0]);
	return scan;
}

static struct capture capture_of(const char *text)
{
	struct capture capture = {.scan_count = 1};
	capture.scans = zeroed(1, sizeof *capture.scans);
	capture.scans[0] = scan_of(text);
	capture_join(&capture, NULL, NULL);
	return capture;
}

static struct record only_record(struct capture *capture)
{
	capture_rewind(capture);
	struct record *record = capture_next(capture);
	CHECK(record != NULL);
	return record ? *record : (struct record){0};
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

static void test_forms_of_an_allocation(void)
{
	static const char *const lines[] = {
		"[001]   227.770754000:               kmem:kmalloc: call_site=single_open+0x2a ptr=0xffff8881027dbb60 bytes_req=30 "
		"bytes_alloc=32 gfp_flags=GFP_KERNEL_ACCOUNT node=-1 accounted=true\n",
		"              ls  1234 [001]   227.770754: kmem:kmalloc: call_site=single_open+0x2a ptr=0xffff8881027dbb60 bytes_req=30 "
		"bytes_alloc=32 gfp_flags=GFP_KERNEL_ACCOUNT node=-1 accounted=true\n",
		"      a [b] c-12     [001] d..2.   227.770754: kmalloc: call_site=single_open+0x2a/0x90 ptr=ffff8881027dbb60 "
		"bytes_req=30 bytes_alloc=32 gfp_flags=GFP_KERNEL_ACCOUNT node=-1 accounted=true\n",
		"ls-1234  (  1234) [001] d..2   227.770754: kmalloc: (single_open+0x2a) call_site=ffffffff81234567 "
		"ptr=0xffff8881027dbb60 bytes_req=30 bytes_alloc=32 gfp_flags=GFP_KERNEL|__GFP_ACCOUNT\r\n",
		"ls 1 [001] 227.770754: kmem:kmalloc: call_site=ffffffff81234567 (single_open+0x2a) ptr=0xffff8881027dbb60 bytes_req=30 "
		"bytes_alloc=32 gfp_flags=GFP_KERNEL|__GFP_ACCOUNT\n",
		"ls 1 [001] 227.770754:          1 kmem:kmalloc: accounted=true ptr=0xffff8881027dbb60 new=field bytes_alloc=32 "
		"call_site=single_open+0x2a bytes_req=30\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct capture capture = capture_of(lines[i]);
		struct record record = only_record(&capture);
		CHECK_EQUAL(record.kind, KMALLOC);
		CHECK_EQUAL(record.time - TIME_ZERO, 227770754000);
		CHECK_EQUAL(record.cpu, 1);
		CHECK_EQUAL(record.address, 0xffff8881027dbb60);
		CHECK_EQUAL(record.size, 30);
		CHECK_EQUAL(record.allocated, 32);
		CHECK_EQUAL(record.accounted, 1);
		CHECK(record.node == -1);
		CHECK_TEXT(capture.texts.call_sites.texts[record.call_site], "single_open+0x2a");
		CHECK_EQUAL(capture.scans[0].unparsed, 0);
		capture_close(&capture);
	}
}

static void test_pages(void)
{
	static const struct {
		const char *line;
		uint64_t pfn;
		int migrate;
	} cases[] = {
		{"[000] 1.0: kmem:mm_page_alloc: page=0x122744 pfn=0x122744 order=2 migratetype=2 gfp_flags=__GFP_RECLAIMABLE\n", 0x122744, 2},
		{"[000] 1.0: mm_page_alloc: page=ffffea0000000000 pfn=1189700 order=2 migratetype=1 gfp_flags=GFP_HIGHUSER_MOVABLE\n", 1189700, 1},
		/* In Linux before 4.4 the numbers of the two types are swapped. */
		{"[000] 1.0: mm_page_alloc: page=ffffea0000000000 pfn=77 order=2 migratetype=1 gfp_flags=GFP_KERNEL|GFP_RECLAIMABLE\n", 77, 2},
		{"[000] 1.0: mm_page_alloc: page=ffffea0000000000 pfn=77 order=2 migratetype=2 gfp_flags=GFP_HIGHUSER|GFP_MOVABLE\n", 77, 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct capture capture = capture_of(cases[i].line);
		struct record record = only_record(&capture);
		CHECK_EQUAL(record.kind, PAGE_ALLOC);
		CHECK_EQUAL(record.address, cases[i].pfn);
		CHECK_EQUAL(record.order, 2);
		CHECK(record.migrate == cases[i].migrate);
		capture_close(&capture);
	}
}

static void test_what_is_counted_apart(void)
{
	struct scan scan = scan_of(
		"# entries-in-buffer/entries-written: 100/142   #P:1\n"
		"\n"
		"ls 1 [000] 1.000001: kmem:kfree: call_site=a+0x1 ptr=(nil)\n"
		"ls 1 [000] 1.000002: kmem:kfree: call_site=a+0x1 ptr=0x10\n"
		"ls 1 [000] 1.000003: kmem:kmalloc: call_site=a+0x1 ptr=(nil) bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL\n"
		"ls 1 [000] 1.000004: kmem:mm_page_alloc: page=(nil) pfn=0x0 order=9 migratetype=1 gfp_flags=GFP_TRANSHUGE\n"
		"ls 1 [000] 1.000005: kmem:mm_page_alloc: page=(nil) pfn=18446744073709551615 order=9 migratetype=1 gfp_flags=x\n"
		"ls 1 [000] 1.000006: kmem:rss_stat: mm_id=1 curr=1 member=0 size=4096B\n"
		"\tffffffff81636e0d __kmalloc+0x20d ([kernel.kallsyms])\n"
		"\t           146f7c [unknown] (/usr/bin/perf)\n"
		"CPU:0 [LOST 12 EVENTS]\n"
		"[000] 1.000007: PERF_RECORD_LOST lost 30\n"
		"[000] 1.000008: PERF_RECORD_LOST_SAMPLES lost 7\n"
		"ls 1 [000] 1.000009: kmem:kfree: call_site=a+0x1 ptr=zzz\n"
		"ls 1 [000] 1.000009: kmem:kmalloc: call_site=a+0x1 ptr=0x1000\n"
		"ls 1 [000] 1.0000000009: kmem:kfree: call_site=a+0x1 ptr=0x1000\n"
		"ls 1 [000] 1.000010: tracing_mark_write: snapshot-0\n"
		"what is this\n"
		"ls 1 [000] 1.000011: kmem:kfree: call_site=a+0x1 ptr=0xffff8881");
	CHECK_EQUAL(scan.null_frees, 2);
	CHECK_EQUAL(scan.failed_allocs, 3);
	CHECK_EQUAL(scan.lost, 42 + 12 + 30 + 7);
	CHECK_EQUAL(scan.unparsed, 4); /* the last one is cut off, though it reads like a line */
	CHECK_EQUAL(scan.unknown.count, 1);
	CHECK_EQUAL(scan.unknown_counts[0], 1);
	CHECK_EQUAL(scan.spool.records, 1);
	CHECK_EQUAL(scan.events[EVENT_KFREE], 2);
	CHECK_EQUAL(scan.events[EVENT_PAGE_ALLOC], 2);
	CHECK(scan.truncated && scan.tracefs && !scan.foreign);
	struct capture capture = {.scan_count = 1, .scans = zeroed(1, sizeof scan)};
	capture.scans[0] = scan;
	capture_join(&capture, NULL, NULL);
	capture_close(&capture);
}

static void test_old_kernels(void)
{
	struct capture capture = capture_of(
		"# tracer: nop\n"
		"            bash-1234  [000]   100.000001: kfree: call_site=ffffffff8113a1a5 ptr=          (null)\n"
		"            bash-1234  [000]   100.000002: kfree: ptr=          (null) call_site=ffffffff8113a1a5\n"
		"            bash-1234  [000]   100.000003: kmalloc: call_site=ffffffff8113a1a5 ptr=          (null) bytes_req=64 "
		"bytes_alloc=64 gfp_flags=GFP_KERNEL|GFP_ZERO\n"
		"            bash-1234  [000]   100.000004: mm_page_alloc: page=          (null) pfn=0 order=9 migratetype=2 gfp_flags=x\n"
		"            bash-1234  [000]   100.000005: mm_page_free_direct: page=ffffea0000010e38 pfn=1234 order=0\n"
		"            bash-1234  [000]   100.000005: mm_page_alloc: page=ffffea0000010e38 pfn=1234 order=0 migratetype=2 "
		"gfp_flags=GFP_HIGHUSER_MOVABLE\n"
		"            bash-1234  [000]   100.000005: mm_page_alloc_extfrag: page=ffffea0000010e38 pfn=1234 alloc_order=0 "
		"fallback_order=3 pageblock_order=9 alloc_migratetype=1 fallback_migratetype=2 fragmenting=1 change_ownership=0\n"
		"            bash-1234  [000]   100.000006: kmalloc_node: call_site=ffffffff8113a1a5 ptr=ffff880036a94000 bytes_req=60 "
		"bytes_alloc=64 gfp_flags=GFP_KERNEL|GFP_ZERO node=-1\n");
	struct record record = only_record(&capture);
	CHECK_EQUAL(capture.scans[0].unparsed, 0);
	CHECK_EQUAL(capture.scans[0].null_frees, 2);
	CHECK_EQUAL(capture.scans[0].failed_allocs, 2);
	CHECK_EQUAL(record.kind, PAGE_FREE);
	CHECK_EQUAL(record.address, 1234);
	CHECK_EQUAL(capture.scans[0].events[EVENT_PAGE_FREE_DIRECT], 1);
	CHECK(capture_next(&capture)->migrate == MOVABLE);
	CHECK(capture_next(&capture)->migrate == RECLAIMABLE); /* of the event without flags too */
	struct record *alloc = capture_next(&capture);
	CHECK(alloc != NULL && alloc->address == 0xffff880036a94000 && alloc->size == 60);
	CHECK(alloc != NULL && strcmp(capture.texts.call_sites.texts[alloc->call_site], "ffffffff8113a1a5") == 0);
	capture_close(&capture);
	/* NULL is no symbol. */
	capture = capture_of("a 1 [000] 1.0: kmalloc: call_site=ffffffff8113a1a5 (null) ptr=ffff880036a94000 bytes_req=8 bytes_alloc=8\n");
	record = only_record(&capture);
	CHECK_TEXT(capture.texts.call_sites.texts[record.call_site], "ffffffff8113a1a5");
	capture_close(&capture);
}

static void test_damaged_numbers(void)
{
	static const char *const lines[] = {
		"a 1 [000] 9999999999.0: kmem:kfree: call_site=a+0x1 ptr=0x1000\n",
		"a 1 [000] 4611686019.0: kmem:kfree: call_site=a+0x1 ptr=0x1000\n",
		"a 1 [000] 18446744073709551615: kmem:kfree: call_site=a+0x1 ptr=0x1000\n",
		"a 1 [000] 18446744073709551617: kmem:kfree: call_site=a+0x1 ptr=0x1000\n",
		"a 1 [18446744073709551616] 1.0: kmem:kfree: call_site=a+0x1 ptr=0x1000\n",
		"a 1 [000] 1.0: kmem:kmalloc: call_site=a+0x1 ptr=0x1000 bytes_req=18446744073709551624 bytes_alloc=8\n",
		"a 1 [000] 1.0: kmem:kmalloc: call_site=a+0x1 ptr=0x1000 bytes_req=4294967304 bytes_alloc=8\n",
		"a 1 [000] 1.0: kmem:kmalloc: call_site=a+0x1 ptr=0x1000 bytes_req=8 bytes_alloc=4294967304\n",
		"a 1 [000] 1.0: kmem:mm_page_free: page=0x1 pfn=18446744073709552850 order=0\n",
		"a 1 [000] 1.0: kmem:mm_page_free: page=0x1 pfn=1234 order=18446744073709551616\n",
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		struct capture capture = capture_of(lines[i]);
		CHECK_EQUAL(capture.scans[0].unparsed, 1);
		CHECK_EQUAL(capture.records, 0);
		capture_close(&capture);
	}
}

static void test_brackets_in_the_name_of_a_task(void)
{
	struct capture capture = capture_of(
		"a[1] b-12    [002] d..2.   1.000001: kfree: call_site=a+0x1 ptr=0x1000\n"
		"[3] x [7] 12 [002] 1.000002: kmem:kfree: call_site=a+0x1 ptr=0x2000\n"
		"a[99999999999999999999] 12 [002] 1.000003: kmem:kfree: call_site=a+0x1 ptr=0x3000\n"
		"a[1] b-12    [002] d..2.   1.000004: kfree: call_site=a+0x1\n");
	uint64_t address = 0;
	CHECK_EQUAL(capture.scans[0].unparsed, 1);
	CHECK_EQUAL(capture.records, 3);
	capture_rewind(&capture);
	for (const struct record *record; (record = capture_next(&capture)) != NULL;) {
		CHECK_EQUAL(record->cpu, 2);
		CHECK_EQUAL(record->address, address += 0x1000);
	}
	capture_close(&capture);
}

static void test_stacks(void)
{
	struct capture capture = capture_of(
		"ls 1 [000] 1.1: kmem:kfree: call_site=a+0x1 ptr=0x1000\n"
		"\tffffffff81636e0d kfree+0x2a ([kernel.kallsyms])\n"
		"\tffffffff813ceccc [unknown] ([kernel.kallsyms])\n"
		"\tffffffff813cee01 a;b+0x1\n"
		"\t           ee137 main (/bin/ls)\n"
		"\n"
		"ls 1 [000] 1.2: kmem:kfree: call_site=a+0x1 ptr=(nil)\n"
		"\tffffffff81636e0d of_nothing\n"
		"ls 1 [000] 1.3: kmem:kfree: call_site=a+0x1 ptr=0x2000\n"
		"ls 1 [000] 1.4: kmem:mm_page_free: page=0x1 pfn=0x99 order=0\n"
		"\tc0636e0d kfree\n");
	static const char *const stacks[] = {"a:b;ffffffff813ceccc;kfree", NULL, "kfree"};
	size_t at = 0;
	CHECK_EQUAL(capture.scans[0].unparsed, 0);
	CHECK_EQUAL(capture.records, 3);
	capture_rewind(&capture);
	for (const struct record *record; (record = capture_next(&capture)) != NULL; at++) {
		CHECK((record->stack == NONE) == (stacks[at] == NULL));
		if (stacks[at])
			CHECK_TEXT(capture.texts.stacks.texts[record->stack], stacks[at]);
	}
	capture_close(&capture);
}

static void test_many_marks(void)
{
	enum { LINES = 70000, ROOM = 64 };
	static char text[ROOM];
	static const char *const wanted[] = {"step 69000"};
	struct scan scan = {.wanted = wanted, .wanted_count = 1, .fd = -1};
	FILE *file = tmpfile();
	CHECK(file != NULL);
	for (unsigned i = 0; i < LINES; i++) {
		snprintf(text, sizeof text, "a-1 [000] %u.0: tracing_mark_write: step %u\n", i + 1, i);
		fputs(text, file);
		if (i == 69000)
			fputs(text, file);
	}
	rewind(file);
	scan.fd = fileno(file);
	scan_input(&scan);
	CHECK_EQUAL(scan.unparsed, 0);
	CHECK_EQUAL(scan.spool.records, 1001); /* the first thousand names, and once the name that was asked for */
	CHECK_EQUAL(scan.unknown_counts[0], LINES + 1 - 1001);
	CHECK_TEXT(scan.unknown.texts[0], "tracing_mark_write");
	CHECK_TEXT(scan.texts.marks.texts[1000], "step 69000");
	fclose(file);
	struct capture capture = {.scan_count = 1, .scans = zeroed(1, sizeof scan)};
	capture.scans[0] = scan;
	capture_join(&capture, NULL, NULL);
	capture_close(&capture);
}

static void test_time_never_goes_back(void)
{
	struct capture capture = capture_of("ls 1 [000] 1.5: kmem:kfree: call_site=a+0x1 ptr=0x3000\n"
	                                    "ls 1 [001] 1.3: kmem:kfree: call_site=a+0x1 ptr=0x1000\n"
	                                    "ls 1 [000] 1.6: kmem:kfree: call_site=a+0x1 ptr=0x4000\n"
	                                    "ls 1 [001] 1.4: kmem:kfree: call_site=a+0x1 ptr=0x2000\n");
	uint64_t order = 0;
	CHECK_EQUAL(capture.scans[0].spool.reordered, 2);
	capture_rewind(&capture);
	for (const struct record *record; (record = capture_next(&capture)) != NULL;)
		CHECK_EQUAL(record->address, ++order << 12);
	CHECK_EQUAL(order, 4);
	capture_close(&capture);
}

static void test_parts_are_merged_by_time(void)
{
	struct capture capture = {.scan_count = 2, .scans = zeroed(2, sizeof *capture.scans)};
	uint64_t order = 0;
	capture.scans[0] = scan_of("[000] 1.1: kmem:kfree: call_site=a+0x1 ptr=0x1000\n[000] 1.3: kmem:kfree: call_site=b+0x1 ptr=0x3000\n");
	capture.scans[1] = scan_of("[001] 1.2: kmem:kfree: call_site=b+0x1 ptr=0x2000\n[001] 1.3: kmem:kfree: call_site=a+0x1 ptr=0x4000\n");
	capture_join(&capture, "first", "last");
	capture_rewind(&capture);
	CHECK_EQUAL(capture_next(&capture)->kind, SNAPSHOT);
	for (const struct record *record; (record = capture_next(&capture))->kind == KFREE;) {
		CHECK_EQUAL(record->address, ++order << 12);
		CHECK_TEXT(capture.texts.call_sites.texts[record->call_site], order == 1 || order == 4 ? "a+0x1" : "b+0x1");
	}
	CHECK_EQUAL(order, 4);
	CHECK(capture_next(&capture) == NULL);
	CHECK_EQUAL(capture.taken, 6);
	capture_close(&capture);
}

/* ---- Page sizes ------------------------------------------------------------------------------------------------- */

/* A capture of a kernel with pages of 1 << shift bytes and a base of its own: slabs, each with an object at once. */
static struct capture slabs_of(unsigned shift, uint64_t base)
{
	static char text[60000];
	size_t length = 0;
	for (unsigned i = 0; i < 150; i++) {
		unsigned pfn = 0x8000 + 37 * i;
		length += (size_t)snprintf(text + length, sizeof text - length,
		                           "[000] 1.%06u: kmem:mm_page_alloc: page=0x1 pfn=0x%x order=0 migratetype=0 gfp_flags=x\n"
		                           "[000] 1.%06u: kmem:kmem_cache_alloc: call_site=a ptr=0x%llx bytes_req=192 bytes_alloc=192\n",
		                           2 * i, pfn, 2 * i + 1, (unsigned long long)(base + ((uint64_t)pfn << shift) + 192 * (i % 20)));
	}
	return capture_of(text);
}

static void test_page_sizes(void)
{
	static const struct {
		unsigned shift;
		uint64_t base;
	} cases[] = {{12, 0xffff888000000000}, {14, 0xffff000000000000}, {16, 0xc000000000000000}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct capture capture = slabs_of(cases[i].shift, cases[i].base);
		for (unsigned shift = 12; shift <= 16; shift += 2) {
			struct base base = {0};
			base_find(&capture, &(struct slab_frames){0}, &base, shift);
			CHECK(base.known == (shift == cases[i].shift));
			CHECK(!base.hashed);
			CHECK_EQUAL(base.shift, shift);
			CHECK(!base.known || base.address == cases[i].base);
		}
		capture_close(&capture);
	}
}

/* ---- Captures that contradict themselves ------------------------------------------------------------------------- */

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 33) % limit;
}

static size_t random_line(char *to, size_t room, unsigned time)
{
	static const char *const allocs[] = {"kmalloc", "kmalloc_node", "kmem_cache_alloc"};
	static const char *const names[] = {"", " name=", " name=dentry", " name=filp"};
	/* Pages 512 to 575 hold objects at 0xffff888000200000 and above. */
	unsigned pfn = 512 + random_below(64), order = random_below(4);
	unsigned long long address = 0xffff888000000000 + ((unsigned long long)pfn << 12) + 64 * random_below(64);
	int length;
	switch (random_below(6)) {
	case 0:
	case 1:
		length = snprintf(to, room, "[%03u] %u.%06u: kmem:%s: call_site=f+0x%x ptr=0x%llx%s bytes_req=%u bytes_alloc=%u gfp_flags=GFP_KERNEL\n",
		                  random_below(3), time / 1000000, time % 1000000, allocs[random_below(3)], random_below(5), address,
		                  names[random_below(4)], 8u << random_below(4), 4096u >> random_below(8));
		break;
	case 2:
	case 3:
		length = snprintf(to, room, "[%03u] %u.%06u: kmem:%s: call_site=g+0x%x ptr=0x%llx%s\n", random_below(3), time / 1000000,
		                  time % 1000000, random_below(2) ? "kfree" : "kmem_cache_free", random_below(5), address, names[random_below(4)]);
		break;
	case 4:
		length = snprintf(to, room, "[%03u] %u.%06u: kmem:mm_page_alloc: page=0x1 pfn=0x%x order=%u migratetype=%u gfp_flags=GFP_KERNEL\n",
		                  random_below(3), time / 1000000, time % 1000000, pfn >> order << order, order, random_below(3));
		break;
	default:
		length = snprintf(to, room, "[%03u] %u.%06u: kmem:mm_page_free: page=0x1 pfn=0x%x order=%u\n", random_below(3), time / 1000000,
		                  time % 1000000, pfn >> order << order, order);
	}
	return (size_t)length;
}

static void mutate(char *text, size_t length)
{
	for (unsigned count = random_below(20); count; count--)
		text[random_below((uint32_t)length)] = random_below(4) ? " =:[]0x-\n/("[random_below(11)] : (char)(1 + random_below(255));
}

/* All passes over one text, with the base that the addresses above were made for, or none. */
static void run_all(const char *text, const struct slab_frames *slabs, bool known)
{
	struct capture capture = capture_of(text);
	struct slab_shape shapes[] = {
		{(uint16_t)intern(&capture.texts.names, "dentry", 6), 0, 192, 192, 21},
		{(uint16_t)intern(&capture.texts.names, "kmalloc-512", 11), 2, 512, 512, 32},
	};
	struct slab_frames with_shapes = *slabs;
	struct base base = {0};
	struct resolution resolution;
	struct counts counts = {0};
	FILE *out = fopen("/dev/null", "wb");
	CHECK(out != NULL);
	if (slabs->count) {
		with_shapes.shapes = shapes;
		with_shapes.shape_count = sizeof shapes / sizeof *shapes;
		slabs = &with_shapes;
	}
	base_find(&capture, slabs, &base, PAGE_SHIFT);
	base.known = known;
	base.address = 0xffff888000000000;
	resolve(&capture, &base, slabs, &resolution);
	header_write(&capture, &base, &resolution, out);
	emit(&capture, &base, &resolution, &counts, out);
	trailer_write(&resolution, &counts, capture.repeats, out);
	CHECK_EQUAL(counts.rows, capture.records + counts.implied_frees + counts.implied_allocs + counts.implied_page_frees +
	                             counts.implied_page_allocs);
	fclose(out);
	free(counts.snapshot_marks);
	resolution_free(&resolution);
	capture_close(&capture);
}

static void test_random_captures(void)
{
	static char text[60000];
	static uint64_t frames[] = {512, 513, 514, 515, 517, 520, 521, 522, 523, 525, 528, 532, 533, 545, 552, 575};
	const struct slab_frames slabs[] = {{0}, {.frames = frames, .count = sizeof frames / sizeof *frames}};
	for (unsigned round = 0; round < 300; round++) {
		size_t length = 0, room = 400 + random_below(sizeof text - 800);
		for (unsigned time = 1000; length < room; time += random_below(50))
			length += random_line(text + length, sizeof text - length, time);
		text[length] = '\0';
		if (round % 2)
			mutate(text, length);
		run_all(text, &slabs[round / 3 % 2], round % 3 != 0);
	}
}

int main(void)
{
	test_forms_of_an_allocation();
	test_pages();
	test_what_is_counted_apart();
	test_old_kernels();
	test_damaged_numbers();
	test_brackets_in_the_name_of_a_task();
	test_stacks();
	test_many_marks();
	test_page_sizes();
	test_time_never_goes_back();
	test_parts_are_merged_by_time();
	test_random_captures();
	return check_result();
}
