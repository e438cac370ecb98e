/*
 * What programs that a line went through have left in it: escape sequences of a terminal's colours, the end of a string or of an HTML
 * element behind the last field.
 */
#include "import.h"
#include "words.h"

enum { ESCAPE = 0x1b };

/* Behind the escape sequence that begins there: ESC, perhaps `[` with parameters, and a last character. */
static const char *behind_escape(const char *at, const char *end)
{
	at++;
	bool parameters = at < end && *at == '[';
	at += parameters;
	while (at < end && *at >= ' ' && *at <= (parameters ? '?' : '/'))
		at++;
	return at < end ? at + 1 : end;
}

char *without_escapes(char *line, char *end)
{
	char *to = memchr(line, ESCAPE, (size_t)(end - line));
	if (!to)
		return end;
	for (const char *from = to; from < end;) {
		if (*from == ESCAPE)
			from = behind_escape(from, end);
		else
			*to++ = *from++;
	}
	return to;
}

/* Where the tag of HTML begins that ends the text, `</span>` or `<br/>`; its end when there is none. */
static const char *before_tag(const char *fields, const char *end)
{
	const char *open = end;
	while (open > fields && open[-1] != '<' && open[-1] != ' ')
		open--;
	return end > fields && end[-1] == '>' && open > fields && open[-1] == '<' ? open - 1 : end;
}

const char *without_wrapping(const char *fields, const char *end)
{
	while (end > fields) {
		const char *before = strchr(" \t\"',;", end[-1]) && end[-1] ? end - 1 : before_tag(fields, end);
		if (before == end)
			break;
		end = before;
	}
	return end;
}
