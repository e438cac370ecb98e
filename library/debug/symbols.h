/* Names of code addresses, for reports. See symbols.c. */
#ifndef SY_SYMBOLS_H
#define SY_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SY__SYMBOL_BYTES 256u

/* Looks up addresses that follow calls, many at once. Then sy__symbol_of tells one as "function+0x1f (file.c:34)", as far as it is
 * known. One thread at a time; no memory is allocated. */
void sy__symbols_look_up(const uintptr_t *addresses, size_t count);
const char *sy__symbol_of(uintptr_t address);

/* Whether the address is in this library's own code, as far as lines tell. */
bool sy__symbol_is_own(uintptr_t address);

#endif
