/*
 * Pass 1: lines of text into records. Half of an import's time goes here, perf script aside. So the parser is written by hand and
 * looks at each byte of a line once or twice. scan_line() is the fast path.
 *
 * The two forms of a line, perf script's with or without task and process, `kmem:`, and that of tracefs and trace-cmd:
 *
 *     ls  1234 [001]   227.770745123:      kmem:kmalloc: call_site=single_open+0x2a ptr=0xffff8881027dbb60 bytes_req=32 ...
 *     ls-1234 [001] d..2.   227.770745: kmalloc: call_site=single_open+0x2a/0x90 ptr=00000000852a4d20 bytes_req=32 ...
 *
 * The CPU is the first bracketed number. Then comes the time, perhaps after a word of tracefs's flags, then the event, perhaps after
 * a period. Then come key=value words in any order; each event takes those that it knows.
 *
 * Kernels before 6.1 print no node= and accounted=, page frames in decimal, and call sites as addresses, perhaps with a symbol in
 * parentheses before or after. Newer ones print name= on allocations too. Pointers are hexadecimal with or without 0x, or (nil).
 * Before 4.15 NULL is `(null)`, padded to the width of a pointer, so blanks stand between it and its key. A task's name may have a
 * bracketed number. If a line cannot be read with the first such number as the CPU, the next one is tried.
 *
 * Other lines. Comments, blank lines and call chains (an address and a symbol, indented) are skipped. Lost events are added up
 * (remarks.c). Other events are counted by name. All other lines, and events that lack a field, are counted as unparsed.
 */
#include "import.h"
#include "values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 1 << 20, MARKS = 1000 /* that become snapshots without being asked for by name */, WORDS_BEFORE_TIME = 4, BEGINNING = 4096 };

const char *const event_names[EVENT_NAMES] = {
	"kmalloc", "kmalloc_node", "kfree", "kmem_cache_alloc", "kmem_cache_alloc_node", "kmem_cache_free",
	"mm_page_alloc", "mm_page_free", "mm_page_free_direct", "mm_page_alloc_extfrag", "tracing_mark_write",
};
static const uint8_t kinds_of_names[EVENT_NAMES] = {
	KMALLOC, KMALLOC, KFREE, CACHE_ALLOC, CACHE_ALLOC, CACHE_FREE, PAGE_ALLOC, PAGE_FREE, PAGE_FREE, EXTFRAG, SNAPSHOT,
};

/* ---- The fields of an event ------------------------------------------------------------------------------------- */

static void unsigned_field(struct word value, uint64_t *to, unsigned bit, struct fields *fields)
{
	fields->has |= number(value, to) ? bit : IS_WRONG;
}

static void order_field(struct word value, struct record *record, struct fields *fields)
{
	uint64_t order;
	bool good = number(value, &order) && order <= MAX_ORDER;
	if (good)
		record->order = (uint8_t)order;
	fields->has |= good ? HAS_ORDER : IS_WRONG;
}

static void migrate_field(struct word value, struct record *record, struct fields *fields)
{
	int16_t type;
	if (small_signed(value, &type) && type <= INT8_MAX && type >= INT8_MIN)
		record->migrate = (int8_t)type;
	else
		fields->has |= IS_WRONG;
}

static void accounted_field(struct word value, struct record *record, struct fields *fields)
{
	record->accounted = is_true(value);
	fields->has |= HAS_ACCOUNTED;
}

/* One key=value. Keys are told apart by length first, which leaves one or two candidates. */
static void take_field(struct scan *scan, struct record *record, struct fields *fields, struct word key, struct word value)
{
	uint64_t block_order;
	switch (key.end - key.start) {
	case 3:
		if (WORD_IS(key, "ptr"))
			fields->has |= pointer(value, &record->address) ? HAS_PTR : is_hidden(value) ? IS_HIDDEN : IS_WRONG;
		else if (WORD_IS(key, "pfn") && !is_object(record->kind))
			fields->has |= number(value, &record->address) ? HAS_PFN : IS_WRONG;
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
			accounted_field(value, record, fields);
		break;
	case 11:
		if (WORD_IS(key, "bytes_alloc"))
			unsigned_field(value, &fields->alloc, 0, fields);
		else if (WORD_IS(key, "migratetype"))
			migrate_field(value, record, fields);
		else if (WORD_IS(key, "alloc_order"))
			order_field(value, record, fields);
		break;
	case 15:
		if (WORD_IS(key, "pageblock_order") && decimal(value, &block_order) && block_order <= MAX_ORDER)
			scan->pageblock_order = (uint32_t)block_order;
		break;
	case 17:
		if (WORD_IS(key, "alloc_migratetype"))
			migrate_field(value, record, fields);
		break;
	}
}

/* The value of a key with nothing behind it: the padded NULL that may follow, or nothing. */
static struct word padded_null(const char *at, const char *end)
{
	struct word next = next_word(at, end);
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
			fields->count++;
			struct word value = {equals + 1, at};
			if (unlikely(value.start == at))
				value = padded_null(at, end);
			take_field(scan, record, fields, (struct word){start, equals}, value);
			at = value.end;
		} else if (*start == '[' && at[-1] == ']' && at - start > 2 && fields->call_site.start && !fields->module.start) {
			fields->module = (struct word){start, at};
		} else if (*start == '(' && at[-1] == ')' && at - start > 2 && !is_null((struct word){start, at}) && start[1] != '-' &&
		           !is_digit(start[1]))
			fields->symbol = (struct word){start + 1, at - 1};
	}
}

/* A call site as `function+0x2a`, or `function+0x2a [module]`: without the function's length, which tracefs prints, and a symbol if
 * there is one, not an address. */
static uint32_t call_site_of(struct scan *scan, const struct fields *fields)
{
	struct word site = fields->call_site;
	uint64_t address;
	char hex[24], both[256];
	if (pointer(site, &address)) {
		if (fields->symbol.start)
			site = fields->symbol;
		else if (site.end - site.start > 16 && !has_0x(site)) /* decimal: as all others are printed */
			site = (struct word){hex, hex + snprintf(hex, sizeof hex, "0x%" PRIx64, address)};
	}
	for (const char *at = site.end; at - site.start > 2; at--)
		if (at[-1] == '/') {
			site.end = at - 1;
			break;
		}
	int length = (int)(site.end - site.start), more = (int)(fields->module.end - fields->module.start);
	if (more && length + more + 1 < (int)sizeof both) {
		length = snprintf(both, sizeof both, "%.*s %.*s", length, site.start, more, fields->module.start);
		site = (struct word){both, both + length};
	}
	return intern(&scan->texts.call_sites, site.start ? site.start : "", (size_t)(site.end - site.start));
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
 * Flags as a number, which some tools print. Most bits moved in Linux 5.0. A number with one of today's two bits of reclaim is of
 * today: before, they said to retry, or never to fail. Linux 4.4 to 4.20 had reclaim in the bits from OLD_RECLAIM on.
 */
enum { RECLAIM_BITS = 0xc00, ACCOUNT_BIT = 0x400000, RECLAIMABLE_BIT = 0x10, MOVABLE_BIT = 0x8 };
enum { OLD_RECLAIM = 0x200000, OLD_ACCOUNT_BIT = 0x100000, OLDEST_RECLAIMABLE_BIT = 0x80000, OLD_BITS = 0x10000, OLD_SLEEP_BITS = 0xd0 };

static bool flags_number(struct word word, struct flags *flags)
{
	uint64_t bits;
	if (word.start == word.end || !is_digit(*word.start) || !number(word, &bits))
		return false;
	bool today = bits & RECLAIM_BITS || !(bits >= OLD_BITS || bits & OLD_SLEEP_BITS), oldest = !today && bits < OLD_RECLAIM;
	*flags = (struct flags){
		.reclaimable = bits & (oldest ? OLDEST_RECLAIMABLE_BIT : RECLAIMABLE_BIT),
		.movable = bits & MOVABLE_BIT,
		.accounted = !oldest && bits & (today ? ACCOUNT_BIT : OLD_ACCOUNT_BIT),
	};
	return true;
}

static struct flags flags_of(struct word gfp)
{
	struct flags flags;
	if (!flags_number(gfp, &flags))
		flags = (struct flags){
			.reclaimable = CONTAINS(gfp, "RECLAIMABLE") || CONTAINS(gfp, "GFP_TEMPORARY"),
			.movable = CONTAINS(gfp, "MOVABLE"),
			.accounted = CONTAINS(gfp, "ACCOUNT"),
		};
	return flags;
}

/* What the flags of an event say. A capture has few different texts, so each is read once. Text 0 is the empty one; `(nil)` is how no
 * flags at all print. */
static struct flags take_flags(struct scan *scan, struct record *record, struct word gfp)
{
	if (gfp.start == gfp.end || *gfp.start == '(')
		return (struct flags){0};
	uint32_t number = intern(&scan->texts.gfp, gfp.start, (size_t)(gfp.end - gfp.start));
	if (number == NONE) /* there are too many */
		return flags_of(gfp);
	record->gfp = (uint16_t)number;
	if (number == scan->flag_count)
		APPEND(scan->flags, scan->flag_count, scan->flag_room, flags_of(gfp));
	return scan->flags[number];
}

/*
 * Linux 4.4 swapped the numbers of movable and reclaimable. The flags of an allocation tell which type it is, and so the kernel's
 * age. That is then used for events without flags. Records have the numbers of today.
 */
static int8_t migrate_type(struct scan *scan, int8_t recorded, struct flags flags)
{
	if (recorded != MOVABLE && recorded != RECLAIMABLE)
		return recorded;
	if (flags.reclaimable != flags.movable)
		scan->before_4_4 = flags.reclaimable == (recorded == MOVABLE);
	return scan->before_4_4 ? MOVABLE + RECLAIMABLE - recorded : recorded;
}

static bool take_object(struct scan *scan, struct record *record, const struct fields *fields)
{
	bool alloc = is_alloc(record->kind);
	if (fields->has & IS_HIDDEN && !(fields->has & IS_WRONG)) {
		scan->hidden++;
		return true;
	}
	if ((fields->has & (HAS_PTR | IS_WRONG)) != HAS_PTR || (alloc && !(fields->has & HAS_REQ)))
		return false;
	if (record->address > LAST_POINTER_OF_NOTHING && (fields->req > UINT32_MAX || fields->alloc > UINT32_MAX))
		return false; /* no kernel allocates so much: the line is damaged */
	record->size = (uint32_t)fields->req;
	record->allocated = (uint32_t)fields->alloc;
	record->call_site = call_site_of(scan, fields);
	record->name = name_text(scan, fields->name);
	/* Before 6.1 events do not say whether they are charged to a cgroup; the flags do. Where they do, the flags only ask for it: a kernel
	 * without memory cgroups charges nothing. */
	if (alloc) {
		struct flags flags = take_flags(scan, record, fields->gfp);
		if (!(fields->has & HAS_ACCOUNTED))
			record->accounted = flags.accounted;
	}
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
	struct flags flags = record->kind == PAGE_ALLOC ? take_flags(scan, record, fields->gfp) : (struct flags){0};
	record->migrate = migrate_type(scan, record->migrate, flags);
	if (record->address < scan->least_pfn)
		scan->least_pfn = record->address;
	if (record->address + ((uint64_t)1 << record->order) - 1 > scan->most_pfn)
		scan->most_pfn = record->address + ((uint64_t)1 << record->order) - 1;
	stack_wait(scan, record);
	return true;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------ */

enum event_name event_of(struct word word)
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

/* The next bracketed number, without its brackets; false when there is none. */
static bool find_cpu(struct word *digits, const char *end, uint64_t *cpu)
{
	for (const char *open = digits->end; (open = memchr(open, '[', (size_t)(end - open))) != NULL;) {
		const char *close = ++open;
		while (close < end && is_digit(*close))
			close++;
		*digits = (struct word){open, close};
		if (close < end && *close == ']' && decimal(*digits, cpu))
			return true;
	}
	return false;
}

void count_unknown(struct scan *scan, struct word event)
{
	uint32_t number = intern(&scan->unknown, event.start, (size_t)(event.end - event.start));
	if (number == NONE) /* there are too many: the last place counts the rest */
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
 * Marks become snapshots. A program may write hundreds of thousands, one for each of its steps, as Android's do. So only the first
 * MARKS marks become snapshots, and the first one of each name that was asked for. The rest counts as other events.
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
	scan->timed++;
	if (time != scan->latest) {
		scan->latest = time;
		scan->time_changes++;
		scan->fine |= (time - TIME_ZERO) % 1000 != 0;
		scan->finer_than_ms |= (time - TIME_ZERO) % 1000000 != 0;
	}
	if (time < scan->first_time)
		scan->first_time = time;
	if (time > scan->last_time)
		scan->last_time = time;
}

struct record empty_record(uint16_t cpu)
{
	return (struct record){.cpu = cpu, .migrate = -1, .node = -1, .call_site = NONE, .stack = NONE, .task = NONE, .name = NO_TEXT};
}

static void count_event(struct scan *scan, const struct record *record, enum event_name event)
{
	scan->events[event]++;
	take_time(scan, record->time);
	if (record->cpu >= scan->cpus)
		scan->cpus = (uint32_t)record->cpu + 1;
	if (record->node >= (int)scan->nodes)
		scan->nodes = (uint32_t)record->node + 1;
}

/* The time behind the CPU: the first word that is one. Before it stand tracefs's flags, or a date and a time of day, which serve
 * where no other time follows. The word behind it. */
static bool find_time(struct scan *scan, struct record *record, const char *at, const char *end, struct word *behind)
{
	uint64_t days = 0, ns;
	bool counted, has_day = false;
	struct word word = next_word(at, end), flags = {at, at};
	for (unsigned looked = 0; looked < WORDS_BEFORE_TIME && word.start < end; looked++) {
		if (likely(time_of(word, &record->time, &counted))) {
			*behind = next_word(word.end, end);
			scan->counted |= counted;
			scan->tracefs |= flags.end - flags.start >= LEAST_FLAGS && !has_day;
			return true;
		}
		if (*word.start == '[' || (has_day && word.end[-1] == ':')) /* another CPU: the one before was in the task's name */
			break;
		if (time_of_day(word, &ns)) {
			record->time = TIME_ZERO + days * DAY_SECONDS * 1000000000 + ns;
			has_day = true;
		} else {
			date(word, &days);
			flags = word;
		}
		word = next_word(word.end, end);
	}
	*behind = word;
	return has_day;
}

bool take_decoded(struct scan *scan, struct record *record, enum event_name event, const struct fields *fields)
{
	record->kind = kinds_of_names[event];
	if (!(is_object(record->kind) ? take_object(scan, record, fields) : take_page(scan, record, fields)))
		return false;
	count_event(scan, record, event);
	return true;
}

/* An event whose time and CPU are known, from behind its name on. False: it cannot be read. */
bool take_kmem(struct scan *scan, struct record *record, enum event_name event, const char *at, const char *end)
{
	struct fields fields = {0};
	record->kind = kinds_of_names[event];
	take_fields(scan, record, &fields, at, without_wrapping(at, end));
	if (!take_decoded(scan, record, event, &fields))
		return false;
	scan->by_fields[event][fields.count < MOST_FIELDS ? fields.count : MOST_FIELDS - 1]++;
	return true;
}

/* A line with CPU, time and event. False: it cannot be read. */
static bool take_event(struct scan *scan, const char *line, struct word digits, const char *end, uint64_t cpu)
{
	struct record record = empty_record((uint16_t)cpu);
	struct word word;
	uint64_t period;
	if (cpu >= UINT16_MAX || !find_time(scan, &record, digits.end + 1, end, &word))
		return false;
	scan->placed += scan->last_placed != scan->lines;
	scan->last_placed = scan->lines;
	if (decimal(word, &period) || (word.start < end && *word.start == '(')) /* a period, or how long after the event before */
		word = next_word(word.end, end);
	if (word.end - word.start > 12 && memcmp(word.start, "PERF_RECORD_", 12) == 0)
		return take_record(scan, word.start, end);
	if (word.end - word.start < 2 || word.end[-1] != ':')
		return false;
	const char *at = word.end--;
	if (word.end - word.start > 5 && memcmp(word.start, "kmem:", 5) == 0)
		word.start += 5;
	enum event_name event = event_of(word);
	if (likely(event < EVENT_MARK)) {
		record.task = task_of(scan, line, digits.start - 1);
		return take_kmem(scan, &record, event, at, end);
	}
	record.kind = SNAPSHOT;
	if (event == EVENT_MARK && take_mark(scan, &record, at, end))
		count_event(scan, &record, event);
	else
		count_unknown(scan, word);
	return true;
}

/*
 * Only a line that has one of our events is missed when it cannot be read: it names the event, or has its fields. Others may stand
 * between: other tracers' lines, stacks, headings, whatever a page or a log has around them.
 */
static void take_other_line(struct scan *scan, const char *line, const char *end)
{
	struct word name, all = {line, end};
	enum event_name event = find_event(line, end, &name);
	if (event == EVENT_NAMES && (skip_blanks(line, end) == end || take_frame(scan, line, end) || take_remark(scan, line, end)))
		return;
	stack_end(scan);
	if (event != EVENT_NAMES && take_other_form(scan, event, line, name, end))
		return;
	bool missed = event != EVENT_NAMES || CONTAINS(all, "call_site=") || CONTAINS(all, "pfn=");
	scan->unparsed += missed;
	if (!scan->timed && !*scan->sample && (missed || CONTAINS(all, "kmem:")))
		snprintf(scan->sample, sizeof scan->sample, "%.*s", (int)(end - skip_blanks(line, end)), skip_blanks(line, end));
	scan->raw += CONTAINS(all, " type: ");
}

void scan_line(struct scan *scan, const char *line, const char *end)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, at the start of a text */
	uint64_t cpu;
	if (unlikely(!scan->lines++ && end - line > 3 && memcmp(line, mark, 3) == 0))
		line += 3;
	while (end > line && end[-1] == '\r')
		end--;
	struct word digits = {line, line};
	while (end > line && *line != '#' && find_cpu(&digits, end, &cpu)) {
		stack_end(scan);
		if (likely(take_event(scan, line, digits, end, cpu)))
			return;
	}
	take_other_line(scan, line, end);
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

/* Text begins without NUL and with few other control characters, unlike perf.data, archives and random bytes. */
static bool looks_binary(const char *text, size_t length)
{
	size_t control = 0;
	length = length < BEGINNING ? length : BEGINNING;
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
	texts_init(&scan->texts);
	intern_init(&scan->unknown, sizeof scan->unknown_counts / sizeof *scan->unknown_counts);
	intern_init(&scan->headings, MOST_HEADINGS);
	intern(&scan->texts.gfp, "", 0);
	APPEND(scan->flags, scan->flag_count, scan->flag_room, (struct flags){0});
	scan->nodes = 1;
	scan->pageblock_order = NONE;
	scan->least_pfn = scan->first_time = UINT64_MAX;
}

/*
 * tracefs's clock `uptime` counts jiffies, in hundredths of a second whatever the kernel's own rate; trace-cmd prints these as if they
 * were ns. Of ns, and of other clocks' counts, no four events share one. Where it prints them in microseconds, nothing tells them any
 * more; but no machine has fifty events in one. Whole milliseconds are those of a kernel whose own clock is as coarse (user-mode Linux).
 */
static void scale_ticks(struct scan *scan)
{
	enum { EVENTS_PER_JIFFY = 4, JIFFY = 10000000, TOO_MANY = 50, ENOUGH = 1000 };
	scan->tick_ns = 1;
	scan->counted |= scan->finer_than_ms && scan->timed >= ENOUGH && scan->timed / TOO_MANY > scan->time_changes;
	if (!scan->fine || scan->timed / EVENTS_PER_JIFFY <= scan->time_changes || scan->last_time - TIME_ZERO > MAX_TIME / JIFFY)
		return;
	scan->counted = false;
	scan->tick_ns = JIFFY;
	scan->first_time = TIME_ZERO + (scan->first_time - TIME_ZERO) * JIFFY;
	scan->last_time = TIME_ZERO + (scan->last_time - TIME_ZERO) * JIFFY;
}

static void scan_text(struct scan *scan)
{
	char *block = grow(NULL, BLOCK, 1);
	size_t held = 0;
	bool skipping = false; /* inside a line longer than the block */
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
		char *line = block, *end = block + held + got, *newline;
		char *search = block + held;
		while ((newline = memchr(search, '\n', (size_t)(end - search))) != NULL) {
			if (!skipping)
				scan_line(scan, line, without_escapes(line, newline));
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
	/* A last line without a newline was cut off. It is not parsed: it might read like a whole line, with half a pointer. */
	scan->truncated = held > 0;
	scan->unparsed += held > 0 && !skipping;
	free(block);
}

void scan_input(struct scan *scan)
{
	scan_open(scan);
	if (scan->is_perf)
		scan_perf(scan);
	else
		scan_text(scan);
	if (scan->lost_in_all > scan->lost)
		scan->lost = scan->lost_in_all;
	scale_ticks(scan);
	free(scan->flags);
	stack_end(scan);
	spool_finish(&scan->spool);
}
