/* <linux/string.h> for kernel code that is compiled into a program: the C library's, with kstrdup and its kind, and what a kernel has besides. */
#ifndef SLABYARD_KERNEL_LINUX_STRING_H
#define SLABYARD_KERNEL_LINUX_STRING_H

#pragma GCC system_header

#include <slabyard/kmem.h>
#include <string.h>
#include <strings.h>

#include "err.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

ssize_t sy__strscpy(char *to, const char *from, size_t room);
size_t sy__strlcat(char *to, const char *from, size_t room);
char *sy__strsep(char **rest, const char *ends);
char *sy__strim(char *text);
bool sy__sysfs_streq(const char *one, const char *other);
int sy__match_string(const char *const *array, size_t count, const char *text, bool sysfs);
void *sy__memchr_inv(const void *memory, int byte, size_t size);
char *sy__strreplace(char *text, char old, char by);
char *sy__skip_spaces(const char *text);
char **sy__argv_split(gfp_t, const char *text, int *count);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

/* Characters copied, always with an end; -E2BIG: they did not fit. The room of an array need not be told. */
#define strscpy(...) SY__STRSCPY(__VA_ARGS__, sy__strscpy, SY__STRSCPY_ARRAY, 0)(__VA_ARGS__)
#define SY__STRSCPY(to, from, room, chosen, ...) chosen
#define SY__STRSCPY_ARRAY(to, from) sy__strscpy(to, from, sizeof(to))
#define strscpy_pad(...) SY__STRSCPY(__VA_ARGS__, sy__strscpy_pad, SY__STRSCPY_PAD_ARRAY, 0)(__VA_ARGS__)
#define SY__STRSCPY_PAD_ARRAY(to, from) sy__strscpy_pad(to, from, sizeof(to))

static inline ssize_t sy__strscpy_pad(char *to, const char *from, size_t room)
{
	ssize_t length = sy__strscpy(to, from, room);

	if (length >= 0)
		memset(to + length, 0, room - (size_t)length);
	return length;
}

static inline size_t sy__strlcpy(char *to, const char *from, size_t room)
{
	sy__strscpy(to, from, room);
	return strlen(from);
}

/* Within that many characters of a text. */
static inline char *sy__strnstr(const char *text, const char *part, size_t most)
{
	size_t length = strlen(part);

	for (most = strnlen(text, most); most >= length; most--, text++)
		if (!memcmp(text, part, length))
			return (char *)(uintptr_t)text;
	return NULL;
}

/* As macros, as some C libraries have them. */
#define strlcpy(to, from, room) sy__strlcpy(to, from, room)
#define strlcat(to, from, room) sy__strlcat(to, from, room)
#define strsep(rest, ends) sy__strsep(rest, ends)
#define strnstr(text, part, most) sy__strnstr(text, part, most)
#define strchrnul(text, character) (strchr(text, character) ? strchr(text, character) : strchr(text, '\0'))

static inline char *skip_spaces(const char *text) { return sy__skip_spaces(text); }
static inline char *strim(char *text) { return sy__strim(text); }
static inline char *strstrip(char *text) { return sy__strim(text); }
static inline bool sysfs_streq(const char *one, const char *other) { return sy__sysfs_streq(one, other); }
static inline char *strreplace(char *text, char old, char by) { return sy__strreplace(text, old, by); }
static inline void *memchr_inv(const void *memory, int byte, size_t size) { return sy__memchr_inv(memory, byte, size); }
static inline bool mem_is_zero(const void *memory, size_t size) { return !sy__memchr_inv(memory, 0, size); }

/* Where it stands; -EINVAL: nowhere. */
static inline int match_string(const char *const *array, size_t count, const char *text)
{
	return sy__match_string(array, count, text, false);
}

static inline int __sysfs_match_string(const char *const *array, size_t count, const char *text)
{
	return sy__match_string(array, count, text, true);
}

#define sysfs_match_string(array, text) __sysfs_match_string(array, sizeof(array) / sizeof((array)[0]), text)

/* The length of the prefix, or 0. */
static inline size_t str_has_prefix(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(text, prefix, length) ? 0 : length;
}

#define strstarts(text, prefix) (strncmp(text, prefix, strlen(prefix)) == 0)

static inline const char *kbasename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static inline void memzero_explicit(void *memory, size_t size)
{
	memset(memory, 0, size);
	__asm__ volatile("" : : "r"(memory) : "memory");
}

static inline void memcpy_and_pad(void *to, size_t room, const void *from, size_t count, int byte)
{
	memcpy(to, from, count < room ? count : room);
	if (count < room)
		memset((char *)to + count, byte, room - count);
}

#define SY__MEMSET(name, type) \
	static inline void *name(type *memory, type value, size_t count) \
	{ \
		size_t i; \
		for (i = 0; i < count; i++) \
			memory[i] = value; \
		return memory; \
	}
SY__MEMSET(memset16, u16)
SY__MEMSET(memset32, u32)
SY__MEMSET(memset64, u64)

/* Copies of what a kernel gets from a program; errors in their place. */
static inline void *memdup_user(const void *from, size_t size)
{
	void *copy = kmemdup(from, size, GFP_USER);

	return copy ? copy : ERR_PTR(-ENOMEM);
}

static inline void *memdup_user_nul(const void *from, size_t size)
{
	void *copy = kmemdup_nul((const char *)from, size, GFP_USER);

	return copy ? copy : ERR_PTR(-ENOMEM);
}

static inline void *vmemdup_user(const void *from, size_t size)
{
	void *copy = kvmemdup(from, size, GFP_USER);

	return copy ? copy : ERR_PTR(-ENOMEM);
}

static inline char *strndup_user(const char *from, long most)
{
	return strlen(from) >= (size_t)most ? (char *)ERR_PTR(-EINVAL) : (char *)memdup_user(from, strlen(from) + 1);
}

/* The words of a text, the last pointer NULL; one allocation behind it, argv_free's. NULL: no memory. */
static inline char **argv_split(gfp_t flags, const char *text, int *count) { return sy__argv_split(flags, text, count); }
static inline void argv_free(char **words) { kfree(words); }

static inline const char *str_yes_no(bool so) { return so ? "yes" : "no"; }
static inline const char *str_on_off(bool so) { return so ? "on" : "off"; }
static inline const char *str_true_false(bool so) { return so ? "true" : "false"; }
static inline const char *str_enabled_disabled(bool so) { return so ? "enabled" : "disabled"; }

#endif
