/*
 * How debugging is asked for, in a heap's spec (yard:debug=FZ) and in the environment of malloc (SLABYARD_DEBUG).
 *
 *   FZPU                     letters of checks (enum sy_debug), for all caches
 *   FZ,dentry,kmalloc-*;U    blocks between semicolons: letters, then patterns of the caches that they hold for. A cache gets
 *                            the checks of every block that names it, or that names none. As Linux's slab_debug=.
 *   all                      every check
 *   audit, contents, guards  libumem's words (UMEM_DEBUG): U, with freed contents in the log; P; Z and P
 *   firewall=BYTES           libumem's: objects from that size on get pages of their own (G)
 *   quarantine=BYTES         that freed objects may hold before the oldest is used again; K, M and G may follow a number
 *   audit=TRANSACTIONS       that the log remembers
 *   low                      guarded objects stand at the start of their pages
 *   json                     reports are one line of JSON each
 *   mixed                    malloc and new, free and delete may be mixed
 *
 * A word may stand wherever letters may, and between commas behind it. Where letters follow letters, both hold.
 */
#include "spec.h"

#include "text.h"

#include "library/amount.h"

#define MOST_RING 40000u /* the largest block of pages holds them */

const char sy__debug_letters[] = "FZPUCLG";

struct word {
	const char *name;
	uint32_t checks;
};

static const struct word words[] = {
	{ "all", SY_DEBUG_ALL },
	{ "default", SY_DEBUG_AUDIT | SY_DEBUG_POISON | SY_DEBUG_RED_ZONES },
	{ "audit", SY_DEBUG_AUDIT },
	{ "contents", SY_DEBUG_POISON },
	{ "guards", SY_DEBUG_RED_ZONES | SY_DEBUG_POISON },
	{ "firewall", SY_DEBUG_PAGES },
	{ "quarantine", 0 },
	{ "low", 0 },
	{ "json", 0 },
	{ "mixed", 0 },
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct sy_fault *fault, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(fault->text, sizeof(fault->text), format, arguments);
	va_end(arguments);
	for (char *at = fault->text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\177')
			*at = '?';
	return false;
}

/* The length of an item: up to a comma, a semicolon or the end. */
static size_t item_length(const char *text)
{
	return strcspn(text, ",;");
}

static const struct word *find_word(const char *item, size_t length)
{
	size_t name = strcspn(item, "=,;");

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i].name) == (name < length ? name : length) && strncmp(words[i].name, item, strlen(words[i].name)) == 0)
			return &words[i];
	return NULL;
}

/* The checks that an item of letters asks for; 0: it is not one. */
static uint32_t letters_of(const char *item, size_t length)
{
	uint32_t checks = 0;

	for (size_t i = 0; i < length; i++) {
		const char *letter = strchr(sy__debug_letters, item[i]);

		if (!letter || !*letter)
			return 0;
		checks |= 1u << (letter - sy__debug_letters);
	}
	return checks;
}

/* '*' stands for any characters. */
static bool matches(const char *pattern, size_t length, const char *name)
{
	const char *star = NULL, *retry = name;
	size_t at = 0, behind = 0;

	while (*name) {
		if (at < length && pattern[at] == '*') {
			star = name;
			retry = name;
			behind = ++at;
		} else if (at < length && pattern[at] == *name) {
			at++;
			name++;
		} else if (star) {
			at = behind;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (at < length && pattern[at] == '*')
		at++;
	return at == length;
}

/* The checks of one block for a name; NULL: of the block, whatever the name. */
static uint32_t block_checks(const char *block, const char *name)
{
	bool named = false, patterns = false;
	uint32_t checks = 0;

	for (;;) {
		size_t length = item_length(block);
		const struct word *word = find_word(block, length);
		uint32_t asked = word ? word->checks : letters_of(block, length);

		checks |= asked;
		if (!word && !asked && length) {
			patterns = true;
			named = named || (name && matches(block, length, name));
		}
		if (block[length] != ',')
			break;
		block += length + 1;
	}
	return !name || !patterns || named ? checks : 0;
}

uint32_t sy__debug_checks_of(const char *text, const char *name)
{
	uint32_t checks = 0;

	for (; text; text = strchr(text, ';') ? strchr(text, ';') + 1 : NULL)
		checks |= block_checks(text, name);
	return checks ? checks | SY_DEBUG_FREES : 0;
}

static bool set_word(struct sy_debug_config *config, const struct word *word, const char *item, size_t length, struct sy_fault *fault)
{
	const char *equals = memchr(item, '=', length);
	size_t behind = equals ? (size_t)(equals + 1 - item) : length;
	bool has_value = equals != NULL;
	uint64_t amount = 0;

	if (has_value && (!sy__amount(item + behind, length - behind, &amount) || amount > SIZE_MAX / 4))
		return refuse(fault, "debug: %.*s: write a number, which K, M or G may follow", (int)(length < 60 ? length : 60), item);
	if (strcmp(word->name, "json") == 0)
		config->json = true;
	else if (strcmp(word->name, "mixed") == 0)
		config->mixed = true;
	else if (strcmp(word->name, "low") == 0)
		config->guard_low = true;
	else if (strcmp(word->name, "firewall") == 0)
		config->guard_least = (size_t)amount;
	else if (strcmp(word->name, "quarantine") == 0 && has_value)
		config->quarantine = (size_t)amount;
	else if (strcmp(word->name, "audit") == 0 && has_value)
		config->ring = amount < 1 ? 1 : amount > MOST_RING ? MOST_RING : (uint32_t)amount;
	else if (has_value || strcmp(word->name, "quarantine") == 0)
		return refuse(fault, "debug: %.*s: %s", (int)length, item, has_value ? "it takes no number" : "it needs a number");
	return true;
}

bool sy__debug_goes_on(const char *item, size_t length)
{
	return find_word(item, length) || !memchr(item, '=', length);
}

bool sy__debug_parse(struct sy_debug_config *config, const char *text, struct sy_fault *fault)
{
	*config = sy__debug_usual(&sy__debug_program);
	if (strlen(text) >= sizeof(config->text))
		return refuse(fault, "debug: the text is longer than %zu bytes: name fewer caches", sizeof(config->text) - 1);
	strcpy(config->text, text);
	for (const char *at = text; *at; at += item_length(at), at += *at != '\0') {
		const struct word *word = find_word(at, item_length(at));

		if (word && !set_word(config, word, at, item_length(at), fault))
			return false;
	}
	for (const char *block = text; block; block = strchr(block, ';') ? strchr(block, ';') + 1 : NULL) {
		uint32_t checks = block_checks(block, NULL);

		if (!checks && *block && *block != ';')
			return refuse(fault, "debug: %.*s asks for no check: write letters of %s, or all (docs/debugging.md)",
			              (int)(item_length(block) < 60 ? item_length(block) : 60), block, sy__debug_letters);
		config->checks |= checks;
	}
	if (!config->checks)
		return refuse(fault, "debug asks for no check: write letters of %s, or all (docs/debugging.md)", sy__debug_letters);
	config->checks |= SY_DEBUG_FREES;
	return true;
}
