/* The module of this test: names with attributes. Errors are negative, as in a kernel. */
#ifndef TEST_KMEM_NAMES_H
#define TEST_KMEM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct names;

int names_init(void);
void names_exit(void);
struct names *names_new(void);
void names_free(struct names *);
int names_add(struct names *, const char *text);
int names_remove(struct names *, const char *text);
int names_set(struct names *, const char *text, const char *key, unsigned long long value);
unsigned long long names_get(const struct names *, const char *text, const char *key);
int names_journal(struct names *, size_t bytes);
bool names_journal_whole(const struct names *);
char *names_describe(const struct names *);

#endif
