/* Faults of programs whose heaps have checks. See faults.c. */
#ifndef SY_LIBRARY_DEBUG_FAULTS_H
#define SY_LIBRARY_DEBUG_FAULTS_H

/* Has faults tell which object of a heap with checks they are about, from the first call on. */
void sy__faults_watch(void);

#endif
