/*
 * Pass 1 of perf.data: samples into records, without a text between. perf script needs three times as long for its text as all the rest
 * of an import takes.
 *
 * lab/slabyard/capture/perfformat.py reads what a file says of its own form, and describes it in a few lines (its `layout`): where the
 * data is, what a sample consists of, and where each event has its fields. What it cannot describe goes through perf script. So here are
 * only records of known form: each size and place is checked, and a sample that is too short is counted as
 * a line that cannot be read.
 *
 * Order. perf has a buffer for each CPU, and empties one after the other; behind each round stands a FINISHED_ROUND. What comes in a round
 * is not older than what the round before the last one had. So keys of samples (time, place) are kept until the end of the next round,
 * and sorted. The bytes themselves are read in order, and kept as long as keys point there.
 *
 * Who did it. A sample has the numbers of process and thread. Names come with records of their own (COMM, and FORK for what a new thread
 * has from its parent), in the order of time like the samples. Where none has come perf prints a colon and the number.
 */
#include "import.h"
#include "values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, MOST_KEYS = 1 << 23 /* in a file without rounds */, MOST_FLAGS = 128, LONGEST_NAME = 64, GFP_TEXTS = 64 };

/* perf_event_header, its types, and perf_event_attr.sample_type, of Linux's perf_event.h. */
struct header {
	uint32_t type;
	uint16_t misc, size;
};
enum { TYPE_LOST = 2, TYPE_COMM = 3, TYPE_FORK = 7, TYPE_SAMPLE = 9, TYPE_FINISHED_ROUND = 68 };
enum {
	SAMPLE_IP = 1 << 0, SAMPLE_TID = 1 << 1, SAMPLE_TIME = 1 << 2, SAMPLE_ADDR = 1 << 3, SAMPLE_ID = 1 << 6, SAMPLE_CPU = 1 << 7,
	SAMPLE_PERIOD = 1 << 8, SAMPLE_STREAM_ID = 1 << 9, SAMPLE_RAW = 1 << 10, SAMPLE_IDENTIFIER = 1 << 16,
	SAMPLE_NEEDED = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW,
};

enum key {
	KEY_CALL_SITE, KEY_PTR, KEY_BYTES_REQ, KEY_BYTES_ALLOC, KEY_GFP_FLAGS, KEY_NODE, KEY_ACCOUNTED, KEY_NAME, KEY_PFN, KEY_ORDER,
	KEY_MIGRATETYPE, KEYS
};
static const char *const key_names[KEYS] = {
	"call_site", "ptr", "bytes_req", "bytes_alloc", "gfp_flags", "node", "accounted", "name", "pfn", "order", "migratetype",
};

/* Where a field is in the event's own bytes. */
struct place {
	uint16_t offset;
	uint8_t size; /* 0: the event does not have it */
	bool is_signed, is_text; /* text: the place says where that is */
};

/* An event as the kernel describes it. */
struct shape {
	enum event_name event; /* EVENT_NAMES: none of ours */
	char name[LONGEST_NAME];
	struct place places[KEYS];
	bool tells_charge;    /* accounted, by these flags */
	uint64_t charge;
};

struct task {
	int32_t thread, process; /* process: that `text` is of */
	uint32_t comm; /* in perf.comms, + 1; 0: the place is empty */
	uint32_t text; /* in scan.texts.tasks, or NONE */
	bool has_text;
};

struct perf {
	struct scan *scan;
	uint64_t at, end; /* of the data, in the file */
	uint64_t first, last; /* ns: what is wanted */
	size_t tid_at, time_at, cpu_at, raw_at; /* in a sample */
	size_t time_before_end; /* of other records; their time stands so far before their end */
	size_t trailer;
	struct shape *shapes;
	uint32_t shape_count, shape_room;
	uint32_t *by_id; /* shape + 1 */
	struct flag {
		uint64_t bits;
		char name[LONGEST_NAME];
	} flags[MOST_FLAGS];
	uint32_t flag_count;
	struct gfp_text {
		uint64_t bits;
		char *text;
	} gfp_texts[GFP_TEXTS];
	unsigned char *bytes; /* of the data, from the first one that is needed */
	size_t held, room, parsed;
	struct sample_key {
		uint64_t time;
		size_t at;
	} *keys;
	uint32_t key_count, key_room;
	uint64_t newest, limit; /* times: the newest one so far; nothing older than limit comes any more */
	struct interner comms;
	struct task *tasks; /* hash by thread; a power of two of them */
	uint32_t task_count, task_mask;
};

static uint64_t bytes_at(const unsigned char *from, size_t size)
{
	uint64_t value = 0;
	memcpy(&value, from, size);
	return value;
}

/* ---- The layout ------------------------------------------------------------------------------------------------- */

static struct shape *last_shape(struct perf *perf)
{
	if (!perf->shape_count)
		die("the layout of perf.data has a field of no event");
	return &perf->shapes[perf->shape_count - 1];
}

static void add_event(struct perf *perf, unsigned id, const char *name)
{
	struct shape shape = {.event = EVENT_NAMES};
	if (!strncmp(name, "kmem:", 5))
		name += 5;
	snprintf(shape.name, sizeof shape.name, "%s", name);
	shape.event = event_of((struct word){shape.name, shape.name + strlen(shape.name)});
	if (shape.event == EVENT_MARK || id > UINT16_MAX)
		die("the layout of perf.data has an impossible event");
	APPEND(perf->shapes, perf->shape_count, perf->shape_room, shape);
	perf->by_id[id] = perf->shape_count;
}

static void add_field(struct perf *perf, const char *name, unsigned offset, unsigned size, unsigned is_signed, unsigned is_text)
{
	unsigned key = 0;
	while (key < KEYS && strcmp(key_names[key], name) != 0)
		key++;
	if (key == KEYS || offset > UINT16_MAX || !size || size > 8 || (is_text && size != 4))
		die("the layout of perf.data has an impossible field");
	last_shape(perf)->places[key] = (struct place){(uint16_t)offset, (uint8_t)size, is_signed, is_text};
}

/* Bytes of the parts of a sample that are there, up to `part`, in their order; of the whole before its event for part 0. */
static size_t sample_bytes(uint64_t parts, uint64_t part)
{
	static const uint32_t order[] = {SAMPLE_IDENTIFIER, SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ADDR,
	                                 SAMPLE_ID, SAMPLE_STREAM_ID, SAMPLE_CPU, SAMPLE_PERIOD};
	size_t bytes = sizeof(struct header);
	for (size_t i = 0; i < sizeof order / sizeof *order && order[i] != part; i++)
		bytes += parts & order[i] ? 8 : 0;
	return bytes;
}

/* Behind other records stand TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER, as far as samples have them. */
static void take_parts(struct perf *perf, uint64_t parts)
{
	uint64_t behind_time = parts & (SAMPLE_ID | SAMPLE_STREAM_ID | SAMPLE_CPU | SAMPLE_IDENTIFIER);
	uint64_t known = SAMPLE_NEEDED | SAMPLE_IP | SAMPLE_ADDR | SAMPLE_ID | SAMPLE_PERIOD | SAMPLE_STREAM_ID | SAMPLE_IDENTIFIER;
	if ((parts & SAMPLE_NEEDED) != SAMPLE_NEEDED || parts & ~known)
		die("the layout of perf.data has impossible samples");
	perf->tid_at = sample_bytes(parts, SAMPLE_TID);
	perf->time_at = sample_bytes(parts, SAMPLE_TIME);
	perf->cpu_at = sample_bytes(parts, SAMPLE_CPU);
	perf->raw_at = sample_bytes(parts, 0);
	perf->time_before_end = 8 + 8 * (size_t)__builtin_popcountll(behind_time);
	perf->trailer = perf->time_before_end + 8;
}

static void read_layout(struct perf *perf, FILE *layout)
{
	char line[256], name[LONGEST_NAME];
	unsigned a, b, c, d;
	uint64_t from, to;
	perf->last = UINT64_MAX;
	while (fgets(line, sizeof line, layout)) {
		if (sscanf(line, "data %" SCNu64 " %" SCNu64, &from, &to) == 2) {
			perf->at = from;
			perf->end = from + to;
		} else if (sscanf(line, "sample %" SCNu64, &from) == 1)
			take_parts(perf, from);
		else if (sscanf(line, "window %" SCNu64 " %" SCNu64, &from, &to) == 2) {
			perf->first = from;
			perf->last = to;
		} else if (sscanf(line, "pageblock %u", &a) == 1 && a <= MAX_ORDER)
			perf->scan->pageblock_order = a;
		else if (sscanf(line, "event %u %63s", &a, name) == 2)
			add_event(perf, a, name);
		else if (sscanf(line, "field %63s %u %u %u %u", name, &a, &b, &c, &d) == 5)
			add_field(perf, name, a, b, c, d);
		else if (sscanf(line, "charge %" SCNu64, &from) == 1) {
			last_shape(perf)->tells_charge = true;
			last_shape(perf)->charge = from;
		} else if (perf->flag_count < MOST_FLAGS && sscanf(line, "flag %" SCNu64 " %63s", &from, name) == 2) {
			struct flag *flag = &perf->flags[perf->flag_count++];
			flag->bits = from;
			memcpy(flag->name, name, sizeof name);
		} else
			die("the layout of perf.data has a line that cannot be read");
	}
	if (!perf->raw_at)
		die("the layout of perf.data has no samples");
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------ */

static struct task *place_of(struct task *tasks, uint32_t mask, int32_t thread)
{
	uint32_t at = (uint32_t)thread * 2654435769u & mask;
	while (tasks[at].comm && tasks[at].thread != thread)
		at = (at + 1) & mask;
	return &tasks[at];
}

static void make_room(struct perf *perf)
{
	uint32_t mask = perf->task_mask * 2 + 1;
	struct task *larger = zeroed((size_t)mask + 1, sizeof *larger);
	for (uint32_t i = 0; perf->tasks && i <= perf->task_mask; i++)
		if (perf->tasks[i].comm)
			*place_of(larger, mask, perf->tasks[i].thread) = perf->tasks[i];
	free(perf->tasks);
	perf->tasks = larger;
	perf->task_mask = mask;
}

static void set_comm(struct perf *perf, int32_t thread, uint32_t comm)
{
	if (perf->task_count * 2 >= perf->task_mask)
		make_room(perf);
	struct task *task = place_of(perf->tasks, perf->task_mask, thread);
	perf->task_count += !task->comm;
	*task = (struct task){.thread = thread, .comm = comm + 1};
}

static uint32_t comm_of(struct perf *perf, const char *text, size_t length)
{
	uint32_t number = intern(&perf->comms, text, length);
	return number == NONE ? 0 : number;
}

/* The text of a task, as tasks.c makes it of a line. */
static uint32_t text_of(struct perf *perf, int32_t process, uint32_t comm)
{
	const char *name = perf->comms.texts[comm];
	char text[LONGEST_NAME + 16];
	struct word word = {name, name + strlen(name)};
	word.start = skip_blanks(word.start, word.end);
	word.end = back_over_blanks(word.start, word.end);
	if (process < 0 || word.start == word.end)
		return NONE;
	int length = snprintf(text, sizeof text, "%" PRId32 " %.*s", process, (int)(word.end - word.start), word.start);
	return intern(&perf->scan->texts.tasks, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

static uint32_t task_text(struct perf *perf, int32_t process, int32_t thread)
{
	struct task *task = place_of(perf->tasks, perf->task_mask, thread);
	char nameless[16];
	if (unlikely(!task->comm)) {
		int length = snprintf(nameless, sizeof nameless, ":%" PRId32, thread);
		set_comm(perf, thread, comm_of(perf, nameless, (size_t)length));
		task = place_of(perf->tasks, perf->task_mask, thread);
	}
	if (unlikely(!task->has_text || task->process != process)) {
		task->process = process;
		task->text = text_of(perf, process, task->comm - 1);
		task->has_text = true;
	}
	return task->text;
}

static void take_comm(struct perf *perf, const unsigned char *record, size_t size)
{
	const size_t name_at = sizeof(struct header) + 8;
	if (size < name_at + 1 + perf->trailer)
		return;
	const char *name = (const char *)record + name_at;
	size_t most = size - name_at - perf->trailer;
	const char *end = memchr(name, 0, most < LONGEST_NAME ? most : LONGEST_NAME);
	if (end)
		set_comm(perf, (int32_t)bytes_at(record + 12, 4), comm_of(perf, name, (size_t)(end - name)));
}

/* A new thread has its parent's name. */
static void take_fork(struct perf *perf, const unsigned char *record, size_t size)
{
	if (size < sizeof(struct header) + 24)
		return;
	int32_t thread = (int32_t)bytes_at(record + 16, 4), parent = (int32_t)bytes_at(record + 20, 4);
	const struct task *of = place_of(perf->tasks, perf->task_mask, parent);
	if (of->comm)
		set_comm(perf, thread, of->comm - 1);
}

/* ---- Samples ---------------------------------------------------------------------------------------------------- */

/* Flags by their names, as the kernel would print them. */
static char *flag_names(const struct perf *perf, uint64_t bits)
{
	char text[1024];
	size_t length = 0;
	if (!bits)
		length = (size_t)snprintf(text, sizeof text, "none");
	for (uint32_t i = 0; i < perf->flag_count && bits; i++) {
		const struct flag *flag = &perf->flags[i];
		if (!flag->bits || (bits & flag->bits) != flag->bits || length + LONGEST_NAME + 2 > sizeof text)
			continue;
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length ? "|" : "", flag->name);
		bits &= ~flag->bits;
	}
	if (bits && length + 24 < sizeof text)
		length += (size_t)snprintf(text + length, sizeof text - length, "%s0x%" PRIx64, length ? "|" : "", bits);
	char *copy = grow(NULL, length + 1, 1);
	memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}

static struct word gfp_of(struct perf *perf, uint64_t bits)
{
	struct gfp_text *found = &perf->gfp_texts[bits * 0x9e3779b97f4a7c15u >> 58];
	if (unlikely(!found->text || found->bits != bits)) {
		free(found->text);
		*found = (struct gfp_text){bits, flag_names(perf, bits)};
	}
	return (struct word){found->text, found->text + strlen(found->text)};
}

/* An address as %p with 0x prints it; the text ends at `end`. */
static struct word hexadecimal_of(uint64_t address, char *end)
{
	char *at = end;
	do
		*--at = "0123456789abcdef"[address & 15];
	while (address >>= 4);
	*--at = 'x';
	*--at = '0';
	return (struct word){at, end};
}

/* An event's own bytes. */
struct event {
	const unsigned char *bytes;
	size_t size;
	const struct shape *shape;
};

static bool value_of(const struct event *event, enum key key, uint64_t *value)
{
	struct place place = event->shape->places[key];
	if (!place.size || (size_t)place.offset + place.size > event->size)
		return false;
	*value = bytes_at(event->bytes + place.offset, place.size);
	if (place.is_signed && place.size < 8 && *value >> (8 * place.size - 1))
		*value |= ~(uint64_t)0 << 8 * place.size;
	return true;
}

static struct word text_at(const struct event *event, enum key key)
{
	const char *start = (const char *)event->bytes, *end;
	uint64_t where;
	if (!event->shape->places[key].is_text || !value_of(event, key, &where))
		return (struct word){0};
	size_t offset = where & UINT16_MAX, most = where >> 16 & UINT16_MAX;
	if (offset + most > event->size || !most)
		return (struct word){0};
	end = memchr(start + offset, 0, most);
	return (struct word){start + offset, end ? end : start + offset + most};
}

static bool fits_int16(uint64_t value)
{
	return value <= INT16_MAX || -value <= INT16_MAX;
}

static bool take_fields(struct perf *perf, const struct event *event, struct record *record, struct fields *fields, char *digits_end)
{
	uint64_t value;
	if (value_of(event, KEY_CALL_SITE, &value))
		fields->call_site = hexadecimal_of(value, digits_end);
	if (value_of(event, KEY_PTR, &value)) {
		record->address = without_tag(value);
		fields->has |= HAS_PTR;
	}
	if (value_of(event, KEY_PFN, &value)) {
		record->address = value;
		fields->has |= HAS_PFN;
	}
	if (value_of(event, KEY_BYTES_REQ, &fields->req))
		fields->has |= HAS_REQ;
	value_of(event, KEY_BYTES_ALLOC, &fields->alloc);
	if (value_of(event, KEY_NODE, &value)) {
		if (!fits_int16(value))
			return false;
		record->node = (int16_t)value;
	}
	if (value_of(event, KEY_ORDER, &value) && value <= MAX_ORDER) {
		record->order = (uint8_t)value;
		fields->has |= HAS_ORDER;
	}
	if (value_of(event, KEY_MIGRATETYPE, &value)) {
		if (value > INT8_MAX && -value > INT8_MAX)
			return false;
		record->migrate = (int8_t)value;
	}
	if (value_of(event, KEY_GFP_FLAGS, &value)) {
		fields->gfp = gfp_of(perf, value);
		record->accounted = event->shape->tells_charge && value & event->shape->charge;
		fields->has |= event->shape->tells_charge ? HAS_ACCOUNTED : 0;
	}
	if (value_of(event, KEY_ACCOUNTED, &value)) {
		record->accounted = value != 0;
		fields->has |= HAS_ACCOUNTED;
	}
	fields->name = text_at(event, KEY_NAME);
	return true;
}

/* The event of a sample. False: there is none, or it is cut off. */
static bool event_in(const struct perf *perf, const unsigned char *sample, size_t size, struct event *event)
{
	if (size < perf->raw_at + 4)
		return false;
	event->bytes = sample + perf->raw_at + 4;
	event->size = (size_t)bytes_at(sample + perf->raw_at, 4);
	if (event->size < 2 || event->size > size - perf->raw_at - 4)
		return false;
	uint32_t shape = perf->by_id[bytes_at(event->bytes, 2)];
	event->shape = shape ? &perf->shapes[shape - 1] : NULL;
	return shape;
}

static void take_sample(struct perf *perf, const unsigned char *sample, size_t size)
{
	struct scan *scan = perf->scan;
	struct event event;
	struct fields fields = {0};
	char digits[24];
	scan->lines++;
	if (!event_in(perf, sample, size, &event) || bytes_at(sample + perf->cpu_at, 4) >= UINT16_MAX) {
		scan->unparsed++;
		return;
	}
	struct record record = empty_record((uint16_t)bytes_at(sample + perf->cpu_at, 4));
	uint64_t time = bytes_at(sample + perf->time_at, 8);
	if (time < perf->first || time > perf->last)
		return;
	if (event.shape->event == EVENT_NAMES) {
		count_unknown(scan, (struct word){event.shape->name, event.shape->name + strlen(event.shape->name)});
		return;
	}
	record.time = TIME_ZERO + time;
	record.task = task_text(perf, (int32_t)bytes_at(sample + perf->tid_at, 4), (int32_t)bytes_at(sample + perf->tid_at + 4, 4));
	if (time > MAX_TIME || !take_fields(perf, &event, &record, &fields, digits + sizeof digits) ||
	    !take_decoded(scan, &record, event.shape->event, &fields))
		scan->unparsed++;
	stack_end(scan);
}

/* ---- The order of time ------------------------------------------------------------------------------------------- */

static struct header header_at(const struct perf *perf, size_t at)
{
	struct header header;
	memcpy(&header, perf->bytes + at, sizeof header);
	return header;
}

static void take(struct perf *perf, size_t at)
{
	struct header header = header_at(perf, at);
	if (header.type == TYPE_SAMPLE)
		take_sample(perf, perf->bytes + at, header.size);
	else if (header.type == TYPE_COMM)
		take_comm(perf, perf->bytes + at, header.size);
	else
		take_fork(perf, perf->bytes + at, header.size);
}

static int by_time(const void *a, const void *b)
{
	const struct sample_key *left = a, *right = b;
	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->at < right->at ? -1 : left->at > right->at;
}

/* Takes what is not newer than `limit`, oldest first. */
static void release(struct perf *perf, uint64_t limit)
{
	uint32_t taken = 0;
	qsort(perf->keys, perf->key_count, sizeof *perf->keys, by_time);
	for (; taken < perf->key_count && perf->keys[taken].time <= limit; taken++)
		take(perf, perf->keys[taken].at);
	perf->key_count -= taken;
	memmove(perf->keys, perf->keys + taken, perf->key_count * sizeof *perf->keys);
}

/* Forgets the bytes that nothing points to any more. */
static void forget(struct perf *perf)
{
	size_t needed = perf->parsed;
	for (uint32_t i = 0; i < perf->key_count; i++)
		if (perf->keys[i].at < needed)
			needed = perf->keys[i].at;
	for (uint32_t i = 0; i < perf->key_count; i++)
		perf->keys[i].at -= needed;
	perf->parsed -= needed;
	perf->held -= needed;
	memmove(perf->bytes, perf->bytes + needed, perf->held);
}

static void put_off(struct perf *perf, uint64_t time, size_t at)
{
	if (perf->key_count == MOST_KEYS) {
		qsort(perf->keys, perf->key_count, sizeof *perf->keys, by_time);
		release(perf, perf->keys[MOST_KEYS / 2].time);
	}
	APPEND(perf->keys, perf->key_count, perf->key_room, (struct sample_key){time, at});
	if (time > perf->newest)
		perf->newest = time;
}

/* ---- The data --------------------------------------------------------------------------------------------------- */

/* A record that is wholly there. */
static void look_at(struct perf *perf, struct header header)
{
	size_t at = perf->parsed;
	const unsigned char *record = perf->bytes + at;
	if (header.type == TYPE_SAMPLE) {
		if (header.size < perf->raw_at)
			perf->scan->unparsed++;
		else
			put_off(perf, bytes_at(record + perf->time_at, 8), at);
	} else if (header.type == TYPE_COMM || header.type == TYPE_FORK) {
		uint64_t time = header.size < sizeof header + perf->trailer ? 0 : bytes_at(record + header.size - perf->time_before_end, 8);
		if (time && time != UINT64_MAX)
			put_off(perf, time, at);
		else /* perf made it up when it began */
			take(perf, at);
	} else if (header.type == TYPE_LOST && header.size >= sizeof header + 16) {
		perf->scan->lost += bytes_at(record + sizeof header + 8, 8);
	} else if (header.type == TYPE_FINISHED_ROUND) {
		release(perf, perf->limit);
		perf->limit = perf->newest;
	}
}

static void look_at_all(struct perf *perf)
{
	bool rounds = false;
	while (perf->held - perf->parsed >= sizeof(struct header)) {
		struct header header = header_at(perf, perf->parsed);
		if (header.size < sizeof header)
			die("perf.data is damaged: it has a record of %u bytes", header.size);
		if (perf->held - perf->parsed < header.size)
			break;
		look_at(perf, header);
		rounds |= header.type == TYPE_FINISHED_ROUND;
		perf->parsed += header.size;
	}
	if (rounds || perf->key_count == 0 || perf->key_count > MOST_KEYS / 2)
		forget(perf);
}

static bool read_more(struct perf *perf)
{
	size_t want = perf->end - perf->at < CHUNK ? (size_t)(perf->end - perf->at) : CHUNK;
	while (perf->room - perf->held < want) {
		perf->room = perf->room ? 2 * perf->room : 4 * (size_t)CHUNK;
		perf->bytes = grow(perf->bytes, perf->room, 1);
	}
	ssize_t got = pread(perf->scan->fd, perf->bytes + perf->held, want, (off_t)perf->at);
	if (got < 0 && errno != EINTR)
		die("cannot read perf.data: %s", strerror(errno));
	perf->held += got > 0 ? (size_t)got : 0;
	perf->at += got > 0 ? (size_t)got : 0;
	return want && got != 0;
}

void scan_perf(struct scan *scan)
{
	FILE *lines = fdopen(scan->layout, "r");
	struct perf *perf = zeroed(1, sizeof *perf);
	perf->scan = scan;
	perf->by_id = zeroed((size_t)UINT16_MAX + 1, sizeof *perf->by_id);
	if (!lines)
		die("cannot read the layout of perf.data: %s", strerror(errno));
	read_layout(perf, lines);
	fclose(lines);
	intern_init(&perf->comms, NONE - 1);
	make_room(perf);
	set_comm(perf, 0, comm_of(perf, "swapper", 7));
	while (read_more(perf))
		look_at_all(perf);
	if (perf->held > perf->parsed || perf->at < perf->end)
		die("perf.data is damaged: its data ends within a record");
	release(perf, UINT64_MAX);
	for (unsigned i = 0; i < GFP_TEXTS; i++)
		free(perf->gfp_texts[i].text);
	intern_free(&perf->comms);
	free(perf->tasks);
	free(perf->shapes);
	free(perf->by_id);
	free(perf->bytes);
	free(perf->keys);
	free(perf);
}
