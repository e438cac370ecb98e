/* How debugging is asked for: letters, words and patterns. See spec.c. */
#ifndef SY_LIBRARY_DEBUG_SPEC_H
#define SY_LIBRARY_DEBUG_SPEC_H

#include <slabyard/slabyard.h>

extern const char sy__debug_letters[8]; /* of checks, bit by bit of enum sy_debug */

/* Fills in a configuration from a text like "FZ,dentry,kmalloc-*;U" or "all". False: see fault. */
bool sy__debug_parse(struct sy_debug_config *, const char *text, struct sy_fault *);

/* Whether an item behind a comma belongs to such a text, and not to the tunables behind it. */
bool sy__debug_goes_on(const char *item, size_t length);

/* The checks of the cache of this name, by the text of a configuration. */
uint32_t sy__debug_checks_of(const char *text, const char *name);

/* What a program has for debugging: hooks.c. */
extern const struct sy__debug_hooks sy__debug_program;

#endif
