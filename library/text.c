/*
 * Text as kernel code handles it: numbers (linux/kstrtox.h), copies that always have an end (linux/string.h). And
 * the bytes that are random (linux/random.h), of the system.
 */
#include <slabyard/kernel/linux/kstrtox.h>
#include <slabyard/kernel/linux/random.h>
#include <slabyard/kernel/linux/slab.h>
#include <slabyard/kernel/linux/string.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

/* What may stand behind a number. */
static bool ends_here(const char *text)
{
	return !*text || (*text == '\n' && !text[1]);
}

int sy__kstrtoull(const char *text, unsigned base, unsigned long long most, unsigned long long *number)
{
	unsigned long long is;
	char *end;

	if (*text == '+')
		text++;
	if (!isalnum((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	is = strtoull(text, &end, (int)base);
	if (end == text || !ends_here(end))
		return -EINVAL;
	if (errno || is > most)
		return -ERANGE;
	*number = is;
	return 0;
}

int sy__kstrtoll(const char *text, unsigned base, long long least, long long most, long long *number)
{
	bool negative = *text == '-';
	unsigned long long size;
	int error = sy__kstrtoull(text + negative, base, negative ? 0ULL - (unsigned long long)least : (unsigned long long)most,
	                          &size);

	if (error || (negative && text[1] == '+'))
		return error ? error : -EINVAL;
	*number = (long long)(negative ? 0ULL - size : size);
	return 0;
}

int sy__kstrtobool(const char *text, bool *so)
{
	if (!text || !*text || !strchr("yYtT1nNfF0oO", *text))
		return -EINVAL;
	if (*text == 'o' || *text == 'O') {
		if (!text[1] || !strchr("nNfF", text[1]))
			return -EINVAL;
		*so = text[1] == 'n' || text[1] == 'N';
		return 0;
	}
	*so = strchr("yYtT1", *text) != NULL;
	return 0;
}

/* ---- Strings ----------------------------------------------------------------------------------------------------- */

ssize_t sy__strscpy(char *to, const char *from, size_t room)
{
	size_t length;

	if (!room)
		return -E2BIG;
	length = strnlen(from, room);
	if (length == room) {
		memcpy(to, from, room - 1);
		to[room - 1] = '\0';
		return -E2BIG;
	}
	memcpy(to, from, length + 1);
	return (ssize_t)length;
}

size_t sy__strlcat(char *to, const char *from, size_t room)
{
	size_t length = strnlen(to, room);

	if (length < room)
		sy__strscpy(to + length, from, room - length);
	return length + strlen(from);
}

char *sy__strsep(char **rest, const char *ends)
{
	char *token = *rest, *end = token ? strpbrk(token, ends) : NULL;

	if (end)
		*end++ = '\0';
	*rest = end;
	return token;
}

char *sy__skip_spaces(const char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	return (char *)(uintptr_t)text;
}

char *sy__strim(char *text)
{
	size_t length = strlen(text);

	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = '\0';
	return sy__skip_spaces(text);
}

/* But for a line end that one of them may have. */
bool sy__sysfs_streq(const char *one, const char *other)
{
	while (*one && *one == *other) {
		one++;
		other++;
	}
	return ends_here(one) && ends_here(other);
}

int sy__match_string(const char *const *array, size_t count, const char *text, bool sysfs)
{
	for (size_t i = 0; i < count && array[i]; i++)
		if (sysfs ? sy__sysfs_streq(array[i], text) : !strcmp(array[i], text))
			return (int)i;
	return -EINVAL;
}

void *sy__memchr_inv(const void *memory, int byte, size_t size)
{
	const unsigned char *at = memory;

	for (; size--; at++)
		if (*at != (unsigned char)byte)
			return (void *)(uintptr_t)at;
	return NULL;
}

char *sy__strreplace(char *text, char old, char by)
{
	for (char *at = text; (at = strchr(at, old)) != NULL && *at;)
		*at++ = by;
	return text;
}

static size_t words_in(const char *text)
{
	size_t count = 0;

	for (text = sy__skip_spaces(text); *text; text = sy__skip_spaces(text), count++)
		while (*text && !isspace((unsigned char)*text))
			text++;
	return count;
}

/* The words stand behind the pointers to them. */
char **sy__argv_split(gfp_t flags, const char *text, int *count)
{
	size_t words = words_in(text), length = strlen(text) + 1, found = 0;
	char **split = kmalloc((words + 1) * sizeof(*split) + length, flags), *at;

	if (!split)
		return NULL;
	at = memcpy(split + words + 1, text, length);
	for (at = sy__skip_spaces(at); *at; at = sy__skip_spaces(at)) {
		split[found++] = at;
		while (*at && !isspace((unsigned char)*at))
			at++;
		if (*at)
			*at++ = '\0';
	}
	split[found] = NULL;
	if (count)
		*count = (int)found;
	return split;
}

/* ---- Random bytes ------------------------------------------------------------------------------------------------ */

#define AT_ONCE 256 /* that the system gives without an interruption */

static bool fill(char *into, size_t count)
{
	int source = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	bool whole = source >= 0 && read(source, into, count) == (ssize_t)count;

	if (source >= 0)
		close(source);
	return whole;
}

/* Each thread has some in stock, which a fork would hand to both. */
void sy__random_bytes(void *into, size_t count)
{
	static __thread struct {
		char bytes[AT_ONCE];
		size_t left;
		pid_t of;
	} stock;
	char *at = into;

	if (stock.of != getpid())
		stock.left = 0;
	stock.of = getpid();
	while (count--) {
		if (!stock.left && !fill(stock.bytes, AT_ONCE))
			abort();
		stock.left = stock.left ? stock.left : AT_ONCE;
		*at++ = stock.bytes[--stock.left];
	}
}
