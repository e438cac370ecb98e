/* Names of code addresses, for reports. See symbols.c. */
#ifndef SY_SYMBOLS_H
#define SY_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SY__SYMBOL_BYTES 2048u

/* Looks up addresses that follow calls, many at once, for sy__symbol_of of text.h: "function (file.c:34)", as far as it is known. One
 * thread at a time; no memory is allocated. */
void sy__symbols_look_up(const uintptr_t *addresses, size_t count);

/* The file of an address of another program, and the address in that file, as addr2line takes it; false: it is in none. For
 * slabyard-inspect; NULL: addresses are of this program. */
extern bool (*sy__symbols_locate)(uintptr_t address, const char **module, uintptr_t *offset);

#endif
