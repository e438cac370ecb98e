/*
 * slabyard-import [--input FD [--perf FD]]... [--first-mark NAME] [--last-mark NAME] [--mark NAME]... [--page-size BYTES]
 *                 [--slab-frames FD [--slab-shapes FD]]
 *
 * Reads kmem events as text from the inputs (default: standard input), which are parts of one capture, and writes the resolved
 * trace to standard output. import.h has the passes, header.c and rows.c the output.
 *
 *   --perf                      the input before it is a perf.data file, and this descriptor has its layout (perf.c)
 *   --first-mark, --last-mark   add a snapshot before the first and after the last event
 *   --mark                      a mark of the capture that becomes a snapshot however many marks there are
 *   --slab-frames               page frames that were slabs when the capture began, 64 bits each
 *   --slab-shapes               of all caches, where none of these is missing: lines of `size stride objects order name`
 *   --page-size                 of the recorded kernel; without it the capture is asked (base.c)
 *
 * Exit status 0 when everything was written, 2 with one line on standard error otherwise.
 */
#include "import.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { FEW_DESCENTS = 100 };

static void *scan_thread(void *scan)
{
	scan_input(scan);
	return NULL;
}

static void scan_all(struct capture *capture)
{
	pthread_t *threads = zeroed(capture->scan_count, sizeof *threads);
	for (uint32_t i = 1; i < capture->scan_count; i++)
		if (pthread_create(&threads[i], NULL, scan_thread, &capture->scans[i]) != 0)
			die("cannot start a thread: %s", strerror(errno));
	scan_input(&capture->scans[0]);
	for (uint32_t i = 1; i < capture->scan_count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

/* Refuses a capture without events, and says which mistake it is. Refuses times that are differences (perf script --deltatime). */
static void refuse_nothing(const struct capture *capture)
{
	uint64_t lines = 0, events = 0, raw = 0, records = 0, descents = 0, reordered = 0;
	bool foreign = false, trace_dat = false, truncated = false;
	const char *sample = "";
	for (uint32_t i = 0; i < capture->scan_count; i++) {
		const struct scan *scan = &capture->scans[i];
		lines += scan->lines;
		sample = *sample ? sample : scan->sample;
		raw += scan->raw;
		records += scan->spool.records;
		descents += scan->spool.descents;
		reordered += scan->spool.reordered;
		foreign |= scan->foreign;
		trace_dat |= scan->trace_dat;
		truncated |= scan->truncated;
		for (unsigned name = 0; name < EVENT_MARK; name++)
			events += scan->events[name];
	}
	if (trace_dat)
		die("the input is trace-cmd's own file; import the text that trace-cmd report prints of it");
	if (foreign)
		die("the input is binary: no perf.data and no text (unpack an archive, and what is compressed twice)");
	if (!lines)
		die(truncated ? "the input has no whole line; its first one has no end" : "the input is empty");
	if (!events && raw > lines / 4)
		die("the events have no names; tracefs prints them without its options raw, hex and bin (echo noraw > trace_options)");
	if (!events && *sample)
		die("no event in the input has its CPU, time (below 73 years), name and fields, as in `%s`; perf script -F "
		    "cpu,time,event,trace prints them, and tracefs with its option context-info", sample);
	if (!events)
		die("no kmem event in the input; record the events kmem:kmalloc, kmem:kfree, kmem:kmem_cache_alloc, ...");
	if (descents >= FEW_DESCENTS && descents > records / 16 && reordered > records - records / 10)
		die("time goes back at %" PRIu64 " of %" PRIu64 " events: text of perf script --deltatime has no times, make it without that; "
		    "or sort lines that are mixed up", descents, records);
}

static int descriptor(const char *option, const char *text)
{
	char *rest;
	int number = (int)strtol(text, &rest, 10);
	if (*rest || rest == text)
		die("%s takes a file descriptor, not '%s'", option, text);
	return number;
}

static void add_layout(struct capture *capture, const char *text)
{
	if (!capture->scan_count)
		die("--perf goes behind an --input");
	capture->scans[capture->scan_count - 1].is_perf = true;
	capture->scans[capture->scan_count - 1].layout = descriptor("--perf", text);
}

static void add_input(struct capture *capture, const char *text)
{
	struct scan scan = {.fd = descriptor("--input", text)};
	capture->scans = grow(capture->scans, capture->scan_count + 1, sizeof *capture->scans);
	capture->scans[capture->scan_count++] = scan;
}

static void read_slab_frames(struct slab_frames *slabs, const char *text)
{
	FILE *file = fdopen(descriptor("--slab-frames", text), "rb");
	size_t room = 0;
	uint64_t frame;
	if (!file)
		die("--slab-frames: %s", strerror(errno));
	while (fread(&frame, sizeof frame, 1, file))
		APPEND(slabs->frames, slabs->count, room, frame);
	fclose(file);
}

/* Lines of `size stride objects order name`. */
static void read_slab_shapes(struct slab_frames *slabs, struct texts *texts, const char *text)
{
	FILE *file = fdopen(descriptor("--slab-shapes", text), "r");
	struct slab_shape shape;
	char name[64];
	size_t room = 0;
	if (!file)
		die("--slab-shapes: %s", strerror(errno));
	while (fscanf(file, "%u %u %u %hhu %63s", &shape.size, &shape.stride, &shape.objects, &shape.order, name) == 5) {
		uint32_t number = intern(&texts->names, name, strlen(name));
		shape.name = (uint16_t)number;
		if (number != NONE && shape.stride && shape.order <= MAX_ORDER)
			APPEND(slabs->shapes, slabs->shape_count, room, shape);
	}
	fclose(file);
}

/* Resolves with one page size. False, and nothing is resolved: no base won the vote, or the trace contradicts the winner. */
static bool resolve_with(struct capture *capture, const struct slab_frames *slabs, struct base *base, struct resolution *resolution,
                         unsigned shift)
{
	base_find(capture, slabs, base, shift);
	if (!base->known)
		return false;
	resolve(capture, base, slabs, resolution);
	if (resolution->unexplained <= resolution->explained / 4) {
		return true;
	}
	/* It won by chance. */
	resolution_free(resolution);
	base->known = false;
	return false;
}

/* Resolves with the base that the trace supports, or with none. shift: of the page size; 0: tries 4 KiB, then the 16 and 64 KiB of
 * 64-bit Arm and PowerPC. */
static void resolve_verified(struct capture *capture, const struct slab_frames *slabs, struct base *base, struct resolution *resolution,
                             unsigned shift)
{
	struct base other;
	if (resolve_with(capture, slabs, base, resolution, shift ? shift : PAGE_SHIFT))
		return;
	for (unsigned size = PAGE_SHIFT + 2; !shift && size <= MAX_PAGE_SHIFT; size += 2)
		if (resolve_with(capture, slabs, &other, resolution, size)) {
			*base = other;
			return;
		}
	resolve(capture, base, slabs, resolution);
}

static unsigned page_shift(const char *text)
{
	for (unsigned shift = PAGE_SHIFT; shift <= MAX_PAGE_SHIFT; shift++)
		if (strtoull(text, NULL, 10) == 1ull << shift)
			return shift;
	die("pages of %s bytes are not known; 4096, 8192, 16384, 32768 and 65536 are", text);
}

int main(int argc, char **argv)
{
	struct capture capture = {0};
	const char *first_mark = NULL, *last_mark = NULL, *shapes = NULL;
	const char **wanted = zeroed((size_t)argc, sizeof *wanted);
	uint32_t wanted_count = 0;
	struct slab_frames slabs = {0};
	unsigned shift = 0;
	signal(SIGXFSZ, SIG_IGN); /* a file that gets too large is an error like a full disk */
	for (int i = 1; i < argc; i++) {
		if (i + 1 == argc)
			die("unknown or incomplete option '%s'", argv[i]);
		if (!strcmp(argv[i], "--input"))
			add_input(&capture, argv[++i]);
		else if (!strcmp(argv[i], "--perf"))
			add_layout(&capture, argv[++i]);
		else if (!strcmp(argv[i], "--first-mark"))
			first_mark = argv[++i];
		else if (!strcmp(argv[i], "--last-mark"))
			last_mark = argv[++i];
		else if (!strcmp(argv[i], "--mark"))
			wanted[wanted_count++] = argv[++i];
		else if (!strcmp(argv[i], "--page-size"))
			shift = page_shift(argv[++i]);
		else if (!strcmp(argv[i], "--slab-frames"))
			read_slab_frames(&slabs, argv[++i]);
		else if (!strcmp(argv[i], "--slab-shapes"))
			shapes = argv[++i];
		else
			die("unknown or incomplete option '%s'", argv[i]);
	}
	if (!capture.scan_count)
		add_input(&capture, "0");
	for (uint32_t i = 0; i < capture.scan_count; i++) {
		capture.scans[i].wanted = wanted;
		capture.scans[i].wanted_count = wanted_count;
	}

	scan_all(&capture);
	refuse_nothing(&capture);
	capture_join(&capture, first_mark, last_mark);
	if (shapes)
		read_slab_shapes(&slabs, &capture.texts, shapes);

	struct base base = {0};
	struct resolution resolution = {0};
	resolve_verified(&capture, &slabs, &base, &resolution, shift);

	struct counts counts = {0};
	header_write(&capture, &base, &resolution, stdout);
	emit(&capture, &base, &resolution, &counts, stdout);
	trailer_write(&resolution, &counts, capture.repeats, stdout);
	if (fflush(stdout) || ferror(stdout))
		die("cannot write the result: %s", strerror(errno));
	resolution_free(&resolution);
	free(counts.snapshot_marks);
	capture_close(&capture);
	free(slabs.frames);
	free(slabs.shapes);
	free(wanted);
	return 0;
}
