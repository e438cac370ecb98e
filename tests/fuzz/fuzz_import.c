/* The importer's passes over bytes that are a capture in two parts, or no capture at all. */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz.h"
#include "import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

/* Stands in for import/fatal.c, as refusing a capture is right. What the passes hold at that moment is lost. */
static jmp_buf refused;

void die(const char *format, ...)
{
	(void)format;
	longjmp(refused, 1);
}

void *grow(void *memory, size_t count, size_t bytes)
{
	void *larger = realloc(memory, count * bytes);

	FUZZ_CHECK(larger && count <= SIZE_MAX / bytes);
	return larger;
}

void *zeroed(size_t count, size_t bytes)
{
	void *memory = calloc(count ? count : 1, bytes);

	FUZZ_CHECK(memory != NULL);
	return memory;
}

static void scan(struct scan *scan, const uint8_t *text, size_t size)
{
	scan->fd = memfd_create("capture", 0);
	FUZZ_CHECK(scan->fd >= 0 && write(scan->fd, text, size) == (ssize_t)size && !lseek(scan->fd, 0, SEEK_SET));
	scan_input(scan);
	close(scan->fd);
}

static void run(struct capture *capture, unsigned bits, FILE *out)
{
	struct base base = { 0 };
	struct resolution resolution;
	struct counts counts = { 0 };
	uint64_t frames[] = { 0, 1, 2, 16, 17, 18, 19, 255, 256, 0x1000, 0x100000 };
	struct slab_shape shapes[] = { { 0, 0, 192, 192, 21 }, { 0, 1, 64, 64, 128 } };
	struct slab_frames slabs = { frames, bits & 64 ? sizeof frames / sizeof *frames : 0, shapes,
		                     bits & 64 && bits & 2 ? sizeof shapes / sizeof *shapes : 0 };

	capture_join(capture, bits & 2 ? "first" : NULL, bits & 4 ? "last" : NULL);
	shapes[0].name = (uint16_t)intern(&capture->texts.names, "dentry", 6);
	shapes[1].name = (uint16_t)intern(&capture->texts.names, "kmalloc-64", 10);
	base_find(capture, &slabs, &base, PAGE_SHIFT + (bits >> 3) % 5);
	if (bits & 128) {
		base.known = true;
		base.address = 0xffff888000000000;
	}
	resolve(capture, &base, &slabs, &resolution);
	header_write(capture, &base, &resolution, out);
	emit(capture, &base, &resolution, &counts, out);
	trailer_write(&resolution, &counts, capture->repeats, out);
	FUZZ_CHECK(counts.rows == capture->records + counts.implied_frees + counts.implied_allocs + counts.implied_page_frees +
	                                  counts.implied_page_allocs);
	free(counts.snapshot_marks);
	resolution_free(&resolution);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *out;
	unsigned bits = size ? data[0] : 0;
	size_t first = bits & 1 ? size / 2 : size;
	struct capture capture = { .scan_count = bits & 1 ? 2 : 1 };

	if (!size)
		return 0;
	if (!out)
		out = fopen("/dev/null", "wb");
	if (setjmp(refused))
		return 0;
	capture.scans = zeroed(capture.scan_count, sizeof(*capture.scans));
	scan(&capture.scans[0], data + 1, first ? first - 1 : 0);
	if (bits & 1)
		scan(&capture.scans[1], data + first, size - first);
	run(&capture, bits, out);
	capture_close(&capture);
	return 0;
}
