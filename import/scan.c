/*
 * Pass 1: lines of text into records, by hand: this is where half of an import's time goes (perf script aside), so each
 * byte of a line is looked at once or twice. scan_line() is the fast path.
 *
 * The two forms of a line, perf script's with or without task and process, `kmem:`, and that of tracefs and trace-cmd:
 *
 *     ls  1234 [001]   227.770745123:      kmem:kmalloc: call_site=single_open+0x2a ptr=0xffff8881027dbb60 bytes_req=32 ...
 *     ls-1234 [001] d..2.   227.770745: kmalloc: call_site=single_open+0x2a/0x90 ptr=00000000852a4d20 bytes_req=32 ...
 *
 * So: the CPU is the first bracketed number; then comes the time, perhaps after one word of tracefs's flags; then, perhaps
 * after a period, the event; then key=value words in any order, of which each event takes those that it knows. Kernels before 6.1 print no
 * node= and accounted=, page frames in decimal, and call sites as addresses, perhaps with a symbol in parentheses
 * before or after; newer ones print name= on allocations too. Pointers are hexadecimal with or without 0x, or (nil); NULL
 * is `(null)` before 4.15, padded to the width of a pointer, so that blanks stand between it and its key. A task may have
 * a bracketed number in its name: when a line cannot be read with the first one as the CPU, the next one is tried.
 *
 * Everything else that such a text holds: comments, call chains (an address and a symbol, indented) and blank lines are
 * skipped; reports of lost events are added up (remarks.c); events that are none of ours are counted by name; what is none of
 * these, or lacks a field that its event must have, is counted as unparsed.
 */
#include "import.h"
#include "words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, MARKS = 1000 /* that become snapshots without being asked for by name */ };
#define MAX_TIME ((uint64_t)1 << 62) /* ns, 146 years: a later time is damaged, and a replay takes none */

const char *const event_names[EVENT_NAMES] = {
	"kmalloc", "kmalloc_node", "kfree", "kmem_cache_alloc", "kmem_cache_alloc_node", "kmem_cache_free",
	"mm_page_alloc", "mm_page_free", "mm_page_free_direct", "mm_page_alloc_extfrag", "tracing_mark_write",
};
static const uint8_t kinds_of_names[EVENT_NAMES] = {
	KMALLOC, KMALLOC, KFREE, CACHE_ALLOC, CACHE_ALLOC, CACHE_FREE, PAGE_ALLOC, PAGE_FREE, PAGE_FREE, EXTFRAG, SNAPSHOT,
};

static bool has_0x(struct word word)
{
	return word.end - word.start > 2 && word.start[0] == '0' && (word.start[1] | 0x20) == 'x';
}

static struct word after(struct word word, unsigned characters)
{
	return (struct word){word.start + characters, word.end};
}

static bool is_null(struct word word)
{
	return WORD_IS(word, "(nil)") || WORD_IS(word, "(null)");
}

static bool pointer(struct word word, uint64_t *value)
{
	if (has_0x(word))
		return hexadecimal(after(word, 2), value);
	if (is_null(word)) {
		*value = 0;
		return true;
	}
	return hexadecimal(word, value);
}

static bool frame_number(struct word word, uint64_t *value)
{
	return has_0x(word) ? hexadecimal(after(word, 2), value) : decimal(word, value);
}

static bool small_signed(struct word word, int8_t *value)
{
	uint64_t number;
	bool negative = word.start < word.end && *word.start == '-';
	if (!decimal(negative ? after(word, 1) : word, &number) || number > INT8_MAX)
		return false;
	*value = negative ? (int8_t)-(int)number : (int8_t)number;
	return true;
}

/* Seconds with a fraction, as ns; a number without one is taken for ns (counting clocks). The colon is cut off. */
static bool time_of(struct word word, uint64_t *ns)
{
	static const uint32_t scale[10] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
	uint64_t seconds, fraction;
	if (word.start == word.end || word.end[-1] != ':')
		return false;
	word.end--;
	const char *dot = memchr(word.start, '.', (size_t)(word.end - word.start));
	if (!dot)
		return decimal(word, ns) && *ns <= MAX_TIME;
	size_t digits = (size_t)(word.end - dot - 1);
	if (digits > 9 || dot - word.start > 10 || !decimal((struct word){word.start, dot}, &seconds) ||
	    !decimal((struct word){dot + 1, word.end}, &fraction))
		return false;
	*ns = seconds * 1000000000 + fraction * scale[digits]; /* ten digits of seconds: no overflow */
	return *ns <= MAX_TIME;
}

/* ---- The fields of an event ------------------------------------------------------------------------------------- */

enum field {
	HAS_PTR = 1u << 0,
	HAS_REQ = 1u << 1,
	HAS_PFN = 1u << 2,
	HAS_ORDER = 1u << 3,
	IS_WRONG = 1u << 4,
};

struct fields {
	unsigned has;
	uint64_t req, alloc;
	struct word call_site, symbol, gfp, name;
};

static void unsigned_field(struct word value, uint64_t *to, unsigned bit, struct fields *fields)
{
	fields->has |= decimal(value, to) ? bit : IS_WRONG;
}

static void order_field(struct word value, struct record *record, struct fields *fields)
{
	uint64_t order;
	bool good = decimal(value, &order) && order <= MAX_ORDER;
	if (good)
		record->order = (uint8_t)order;
	fields->has |= good ? HAS_ORDER : IS_WRONG;
}

/* One key=value. Keys are told apart by length first, which leaves one or two candidates. */
static void take_field(struct scan *scan, struct record *record, struct fields *fields, struct word key, struct word value)
{
	uint64_t block_order;
	switch (key.end - key.start) {
	case 3:
		if (WORD_IS(key, "ptr"))
			fields->has |= pointer(value, &record->address) ? HAS_PTR : IS_WRONG;
		else if (WORD_IS(key, "pfn") && !is_object(record->kind))
			fields->has |= frame_number(value, &record->address) ? HAS_PFN : IS_WRONG;
		break;
	case 4:
		if (WORD_IS(key, "name"))
			fields->name = value;
		else if (WORD_IS(key, "node") && !small_signed(value, &record->node))
			fields->has |= IS_WRONG;
		break;
	case 5:
		if (WORD_IS(key, "order"))
			order_field(value, record, fields);
		break;
	case 9:
		if (WORD_IS(key, "call_site"))
			fields->call_site = value;
		else if (WORD_IS(key, "bytes_req"))
			unsigned_field(value, &fields->req, HAS_REQ, fields);
		else if (WORD_IS(key, "gfp_flags"))
			fields->gfp = value;
		else if (WORD_IS(key, "accounted"))
			record->accounted = WORD_IS(value, "true");
		break;
	case 11:
		if (WORD_IS(key, "bytes_alloc"))
			unsigned_field(value, &fields->alloc, 0, fields);
		else if (WORD_IS(key, "migratetype") && !small_signed(value, &record->migrate))
			fields->has |= IS_WRONG;
		else if (WORD_IS(key, "alloc_order"))
			order_field(value, record, fields);
		break;
	case 15:
		if (WORD_IS(key, "pageblock_order") && decimal(value, &block_order) && block_order <= MAX_ORDER)
			scan->pageblock_order = (uint32_t)block_order;
		break;
	case 17:
		if (WORD_IS(key, "alloc_migratetype") && !small_signed(value, &record->migrate))
			fields->has |= IS_WRONG;
		break;
	}
}

/* Of a key with nothing behind it: the padded NULL that may follow, or nothing. */
static struct word padded_null(const char *at, const char *end)
{
	struct word next;
	next.start = skip_blanks(at, end);
	next.end = word_end(next.start, end);
	return is_null(next) ? next : (struct word){at, at};
}

static void take_fields(struct scan *scan, struct record *record, struct fields *fields, const char *at, const char *end)
{
	for (;;) {
		at = skip_blanks(at, end);
		if (at == end)
			return;
		const char *start = at, *equals = NULL;
		for (; at < end && *at != ' ' && *at != '\t'; at++)
			if (*at == '=' && !equals)
				equals = at;
		if (equals) {
			struct word value = {equals + 1, at};
			if (unlikely(value.start == at))
				value = padded_null(at, end);
			take_field(scan, record, fields, (struct word){start, equals}, value);
			at = value.end;
		} else if (*start == '(' && at[-1] == ')' && at - start > 2 && !is_null((struct word){start, at}))
			fields->symbol = (struct word){start + 1, at - 1};
	}
}

/* `function+0x2a`: without tracefs's function length, and a symbol rather than an address where there is one. */
static uint32_t call_site_of(struct scan *scan, const struct fields *fields)
{
	struct word site = fields->call_site;
	uint64_t address;
	if (fields->symbol.start && pointer(site, &address))
		site = fields->symbol;
	for (const char *at = site.end; at - site.start > 2; at--)
		if (at[-1] == '/') {
			site.end = at - 1;
			break;
		}
	return intern(&scan->texts.call_sites, site.start ? site.start : "", (size_t)(site.end - site.start));
}

/* Text 0 is the empty one; `(nil)` is how no flags at all print. */
static uint16_t flags_text(struct scan *scan, struct word word)
{
	if (word.start == word.end || *word.start == '(')
		return 0;
	uint32_t number = intern(&scan->texts.gfp, word.start, (size_t)(word.end - word.start));
	return number == NONE ? 0 : (uint16_t)number;
}

static uint16_t name_text(struct scan *scan, struct word word)
{
	if (word.start == word.end)
		return NO_TEXT;
	uint32_t number = intern(&scan->texts.names, word.start, (size_t)(word.end - word.start));
	return number == NONE ? NO_TEXT : (uint16_t)number;
}

static bool contains(struct word word, const char *text, size_t length)
{
	for (const char *at = word.start; at && (size_t)(word.end - at) >= length; at++)
		if (*at == *text && memcmp(at, text, length) == 0)
			return true;
	return false;
}
#define CONTAINS(word, text) contains(word, text, sizeof(text) - 1)

/*
 * Linux 4.4 swapped the numbers of movable and reclaimable. The flags of an allocation tell which it is, and with that the
 * kernel's age, which counts for events without flags. Those of today are kept.
 */
static int8_t migrate_type(struct scan *scan, int8_t recorded, struct word gfp)
{
	if (recorded != MOVABLE && recorded != RECLAIMABLE)
		return recorded;
	bool reclaimable = CONTAINS(gfp, "RECLAIMABLE") || CONTAINS(gfp, "GFP_TEMPORARY"), movable = CONTAINS(gfp, "MOVABLE");
	if (reclaimable != movable)
		scan->before_4_4 = reclaimable == (recorded == MOVABLE);
	return scan->before_4_4 ? MOVABLE + RECLAIMABLE - recorded : recorded;
}

static bool take_object(struct scan *scan, struct record *record, const struct fields *fields)
{
	bool alloc = is_alloc(record->kind);
	if ((fields->has & (HAS_PTR | IS_WRONG)) != HAS_PTR || (alloc && !(fields->has & HAS_REQ)))
		return false;
	if (record->address > LAST_POINTER_OF_NOTHING && (fields->req > UINT32_MAX || fields->alloc > UINT32_MAX))
		return false; /* no kernel has given so much: damaged */
	record->size = (uint32_t)fields->req;
	record->allocated = (uint32_t)fields->alloc;
	record->call_site = call_site_of(scan, fields);
	record->gfp = alloc ? flags_text(scan, fields->gfp) : 0;
	record->name = name_text(scan, fields->name);
	/* Before 6.1 events do not say whether they are charged to a cgroup; the flags do. */
	record->accounted = record->accounted || (alloc && CONTAINS(fields->gfp, "ACCOUNT"));
	if (record->address > LAST_POINTER_OF_NOTHING)
		stack_wait(scan, record);
	else if (alloc)
		scan->failed_allocs++;
	else
		scan->null_frees++;
	return true;
}

static bool take_page(struct scan *scan, struct record *record, const struct fields *fields)
{
	if ((fields->has & (HAS_PFN | HAS_ORDER | IS_WRONG)) != (HAS_PFN | HAS_ORDER))
		return false;
	/* A page allocation that failed prints frame 0, or -1 in some kernels. */
	if (record->kind == PAGE_ALLOC && (record->address == 0 || record->address == UINT64_MAX)) {
		scan->failed_allocs++;
		return true;
	}
	if (record->address >= MAX_PFN)
		return false;
	record->gfp = record->kind == PAGE_ALLOC ? flags_text(scan, fields->gfp) : 0;
	record->migrate = migrate_type(scan, record->migrate, fields->gfp);
	if (record->address < scan->least_pfn)
		scan->least_pfn = record->address;
	if (record->address + ((uint64_t)1 << record->order) - 1 > scan->most_pfn)
		scan->most_pfn = record->address + ((uint64_t)1 << record->order) - 1;
	stack_wait(scan, record);
	return true;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

static enum event_name event_of(struct word word)
{
	switch (word.end - word.start) {
	case 5: return WORD_IS(word, "kfree") ? EVENT_KFREE : EVENT_NAMES;
	case 7: return WORD_IS(word, "kmalloc") ? EVENT_KMALLOC : EVENT_NAMES;
	case 12:
		return WORD_IS(word, "mm_page_free") ? EVENT_PAGE_FREE : WORD_IS(word, "kmalloc_node") ? EVENT_KMALLOC_NODE : EVENT_NAMES;
	case 13: return WORD_IS(word, "mm_page_alloc") ? EVENT_PAGE_ALLOC : EVENT_NAMES;
	case 15: return WORD_IS(word, "kmem_cache_free") ? EVENT_CACHE_FREE : EVENT_NAMES;
	case 16: return WORD_IS(word, "kmem_cache_alloc") ? EVENT_CACHE_ALLOC : EVENT_NAMES;
	case 18: return WORD_IS(word, "tracing_mark_write") ? EVENT_MARK : EVENT_NAMES;
	case 19: return WORD_IS(word, "mm_page_free_direct") ? EVENT_PAGE_FREE_DIRECT : EVENT_NAMES;
	case 21:
		return WORD_IS(word, "mm_page_alloc_extfrag")   ? EVENT_EXTFRAG
		       : WORD_IS(word, "kmem_cache_alloc_node") ? EVENT_CACHE_ALLOC_NODE
		                                                : EVENT_NAMES;
	}
	return EVENT_NAMES;
}

/* Moves `at` behind the next bracketed number; false when there is none. */
static bool find_cpu(const char **at, const char *end, uint64_t *cpu)
{
	for (const char *open = *at; (open = memchr(open, '[', (size_t)(end - open))) != NULL;) {
		const char *close = ++open;
		while (close < end && *close >= '0' && *close <= '9')
			close++;
		if (close < end && *close == ']' && decimal((struct word){open, close}, cpu)) {
			*at = close + 1;
			return true;
		}
	}
	return false;
}

static void count_unknown(struct scan *scan, struct word event)
{
	uint32_t number = intern(&scan->unknown, event.start, (size_t)(event.end - event.start));
	if (number == NONE) /* more kinds than anybody reads: the last place takes the rest */
		number = scan->unknown.limit - 1;
	scan->unknown_counts[number]++;
}

static bool is_wanted(const struct scan *scan, struct word mark)
{
	for (uint32_t i = 0; i < scan->wanted_count; i++)
		if (word_is(mark, scan->wanted[i], strlen(scan->wanted[i])))
			return true;
	return false;
}

/*
 * A program that writes a mark for each of its steps (Android's do, hundreds of thousands) does not mean snapshots: the
 * first MARKS lines become some, and the first of each name that was asked for; the rest are events that are none of ours.
 */
static bool take_mark(struct scan *scan, struct record *record, const char *at, const char *end)
{
	struct word mark = {skip_blanks(at, end), end};
	while (mark.end > mark.start && mark.end[-1] == ' ')
		mark.end--;
	if (scan->marks_taken == MARKS) {
		uint32_t known = scan->texts.marks.count;
		if (!is_wanted(scan, mark) || intern(&scan->texts.marks, mark.start, (size_t)(mark.end - mark.start)) != known)
			return false;
	} else {
		scan->marks_taken++;
	}
	record->address = intern(&scan->texts.marks, mark.start, (size_t)(mark.end - mark.start));
	stack_wait(scan, record);
	return true;
}

static void take_time(struct scan *scan, uint64_t time)
{
	if (time < scan->first_time)
		scan->first_time = time;
	if (time > scan->last_time)
		scan->last_time = time;
}

/* A line with CPU, time and event. False: it cannot be read. */
static bool take_event(struct scan *scan, const char *at, const char *end, uint64_t cpu)
{
	struct record record = {.cpu = (uint16_t)cpu, .migrate = -1, .node = -1, .call_site = NONE, .stack = NONE, .name = NO_TEXT};
	struct word word;
	uint64_t period;
	word.start = skip_blanks(at, end);
	word.end = word_end(word.start, end);
	if (word.start < end && (unsigned char)(*word.start - '0') > 9) {
		word.start = skip_blanks(word.end, end);
		word.end = word_end(word.start, end);
	}
	if (cpu >= UINT16_MAX || !time_of(word, &record.time))
		return false;

	word.start = skip_blanks(word.end, end);
	word.end = word_end(word.start, end);
	if (decimal(word, &period)) {
		word.start = skip_blanks(word.end, end);
		word.end = word_end(word.start, end);
	}
	if (word.end - word.start > 12 && memcmp(word.start, "PERF_RECORD_", 12) == 0)
		return take_record(scan, word.start, end);
	if (word.end - word.start < 2 || word.end[-1] != ':')
		return false;
	at = word.end--;
	if (word.end - word.start > 5 && memcmp(word.start, "kmem:", 5) == 0)
		word.start += 5;
	enum event_name event = event_of(word);
	if (event == EVENT_NAMES) {
		count_unknown(scan, word);
		return true;
	}

	struct fields fields = {0};
	record.kind = kinds_of_names[event];
	if (event == EVENT_MARK) {
		if (!take_mark(scan, &record, at, end)) {
			count_unknown(scan, word);
			return true;
		}
	} else {
		take_fields(scan, &record, &fields, at, end);
		if (!(is_object(record.kind) ? take_object(scan, &record, &fields) : take_page(scan, &record, &fields)))
			return false;
	}
	scan->events[event]++;
	take_time(scan, record.time);
	if (cpu >= scan->cpus)
		scan->cpus = (uint32_t)cpu + 1;
	if (record.node >= (int)scan->nodes)
		scan->nodes = (uint32_t)record.node + 1;
	return true;
}

void scan_line(struct scan *scan, const char *line, const char *end)
{
	const char *at = line;
	uint64_t cpu;
	bool event = false; /* a line of one, readable or not */
	scan->lines++;
	if (end > line && end[-1] == '\r')
		end--;
	struct word all = {line, end};
	while (end > line && *line != '#' && find_cpu(&at, end, &cpu)) {
		event = true;
		stack_end(scan);
		if (likely(take_event(scan, at, end, cpu)))
			return;
	}
	if (!event && (skip_blanks(line, end) == end || take_frame(scan, line, end)))
		return;
	if (event || !take_remark(scan, line, end)) {
		scan->unparsed++;
		scan->unplaced += CONTAINS(all, "call_site=") || CONTAINS(all, "pfn=");
	}
}

/* ---- Input ------------------------------------------------------------------------------------------------------ */

static size_t read_some(int fd, char *to, size_t room)
{
	for (;;) {
		ssize_t got = read(fd, to, room);
		if (got >= 0)
			return (size_t)got;
		if (errno != EINTR)
			die("cannot read the input: %s", strerror(errno));
	}
}

/* Text has no NUL, and few other control characters; perf.data, archives and random bytes have. */
static bool looks_binary(const char *text, size_t length)
{
	size_t control = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == 0)
			return true;
		control += c < 32 && c != '\n' && c != '\t' && c != '\r';
	}
	return control > length / 16;
}

static const char trace_dat[] = {0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g'}; /* how trace-cmd's file begins */

static void scan_open(struct scan *scan)
{
	spool_open(&scan->spool);
	intern_init(&scan->texts.call_sites, NONE - 1);
	intern_init(&scan->texts.stacks, NONE - 1);
	intern_init(&scan->texts.gfp, NO_TEXT - 1);
	intern_init(&scan->texts.names, NO_TEXT - 1);
	intern_init(&scan->texts.marks, NONE - 1);
	intern_init(&scan->unknown, sizeof scan->unknown_counts / sizeof *scan->unknown_counts);
	intern(&scan->texts.gfp, "", 0);
	scan->nodes = 1;
	scan->pageblock_order = NONE;
	scan->least_pfn = scan->first_time = UINT64_MAX;
}

void scan_input(struct scan *scan)
{
	char *block = grow(NULL, BLOCK, 1);
	size_t held = 0;
	bool skipping = false; /* inside a line longer than the block */
	scan_open(scan);
	for (;;) {
		size_t got = read_some(scan->fd, block + held, BLOCK - held);
		if (!got)
			break;
		if (!scan->lines && looks_binary(block, held + got)) {
			scan->foreign = true;
			scan->trace_dat = held + got > sizeof trace_dat && memcmp(block, trace_dat, sizeof trace_dat) == 0;
			held = 0;
			break;
		}
		const char *line = block, *end = block + held + got, *newline;
		const char *search = block + held;
		while ((newline = memchr(search, '\n', (size_t)(end - search))) != NULL) {
			if (!skipping)
				scan_line(scan, line, newline);
			skipping = false;
			line = search = newline + 1;
		}
		held = (size_t)(end - line);
		if (held == BLOCK) {
			scan->unparsed += !skipping;
			scan->lines += !skipping;
			skipping = true;
			held = 0;
		}
		memmove(block, line, held);
	}
	/* A last line without an end was cut off. What is left of it may well read like a line, with half a pointer. */
	scan->truncated = held > 0;
	scan->unparsed += held > 0 && !skipping;
	if (scan->lost_in_all > scan->lost)
		scan->lost = scan->lost_in_all;
	free(block);
	stack_end(scan);
	spool_finish(&scan->spool);
}
