/*
 * slabyard-inspect: what is in the heaps of another process, or of a core file.
 *
 * The other program's memory is brought to the same addresses in this process (image.c), from a process that is stopped
 * meanwhile (process.c) or from a core file (core.c). Then its heaps can be read as our own, except for their pointers to code. These are
 * set to this program's code (heaps.c), and the library's own walk, records and log read the heaps (library/lab/inspect.h). So nothing here
 * knows how a policy keeps its objects.
 *
 * The copied memory may be damaged or forged: a pointer that leads nowhere ends this program with one line. When the copy is there, this
 * program gives up all rights that the other one did not have (privileges.c).
 */
#ifndef INSPECT_H
#define INSPECT_H

#include "library/lab/inspect.h"
#include "programs/fault.h"
#include "programs/json.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- Memory of the other program ------------------------------------------------------------------------------ */

struct region {
	uintptr_t start, end;
	uint64_t offset;  /* in the mapped file; in a core file of its contents */
	uint64_t stored;  /* bytes in the core file; the rest is zero */
	bool readable, writable, executable, shared;
	const char *path; /* of the mapped file; NULL: none, or not known */
};

struct regions {
	struct region *list; /* in order of address */
	size_t count, room;
};

bool regions_add(struct regions *, const struct region *, struct fault *);
const struct region *region_of(const struct regions *, uintptr_t address); /* or NULL */

struct target {
	pid_t pid;               /* 0: a core file */
	const char *name;        /* for messages: "process 12", or the file */
	char program[4096];      /* path of its executable, as far as it is known */
	struct regions regions;
	struct regions modules;  /* parts of files, for symbols */
	int memory;              /* /proc/PID/mem, or the core file */
	uid_t owner;
	gid_t group;
	bool truncated;          /* the core file lacks its end */
	/* of a process */
	bool stopped;            /* by us, or a debugger has stopped it */
	bool direct;             /* process_vm_readv may be used */
	uint64_t stopped_ns;     /* for how long we did */
	unsigned threads;
};

/* process.c. False: see fault; *status is the exit status then. */
bool process_open(struct target *, pid_t, int *status, struct fault *);
bool process_stop(struct target *, struct fault *); /* false: we did not; a debugger may have, see target->stopped */
void process_resume(struct target *);
uint64_t now_ns(void);

/* core.c */
bool core_open(struct target *, const char *path, struct fault *);

/* Reads memory. Returns how many bytes from there on could be read. */
size_t target_read(const struct target *, uintptr_t address, void *to, size_t bytes);

/* ---- image.c -------------------------------------------------------------------------------------------------- */

#define CHUNK ((size_t)256 << 10) /* bytes that are brought at once */

struct image_counts {
	uint64_t copied, late; /* bytes brought; of these, after the process went on */
};
extern struct image_counts image_counts;

/* Takes the addresses of the other program's writable memory. False: something of ours is there; we have to begin again. */
bool image_prepare(struct target *, struct fault *);

/* From here on memory that was not brought yet is brought when it is touched. */
void image_use(void);

/* Notes that this memory will be needed, if it is not there or not up to date. image_fetch brings all that was noted, by several
 * threads; at the deadline (0: there is none) it leaves the rest noted. */
void image_want(const void *from, size_t bytes);
void image_fetch(uint64_t deadline);

/* From image_renew on all memory is brought anew, first what was brought before. */
void image_note_first(void);
void image_renew(void);

/* Whether the other program has memory there. */
bool image_has(const void *from, size_t bytes);

/* ---- privileges.c --------------------------------------------------------------------------------------------- */

/* Gives up all rights but those of the target's owner. False: see fault. */
bool privileges_drop(const struct target *, struct fault *);

/* ---- heaps.c -------------------------------------------------------------------------------------------------- */

struct found {
	const struct sy__anchor *anchors[8]; /* one for each copy of the library */
	unsigned anchor_count;
	const void *sample_rate; /* of its malloc, of whatever build; NULL: there is none */
	struct sy_heap *heaps[64];
	unsigned count;
	unsigned inside; /* threads that were inside of calls */
};

bool heaps_find(const struct target *, struct found *, struct fault *); /* the anchors */
bool heaps_find_sampling(const struct target *, struct found *, struct fault *); /* found->sample_rate */
void heaps_list(struct found *);                   /* reads the list of heaps; may be called again */
void heaps_adopt_slots(struct found *);            /* found->inside */
bool heaps_adopt(struct found *, struct fault *);  /* makes all usable */

/* Number and bytes of the objects of a malloc that are mappings of their own. False: there is no malloc. */
bool heaps_mappings(const struct found *, size_t *objects, size_t *bytes);

/* ---- What is told --------------------------------------------------------------------------------------------- */

struct question {
	const char *cache;     /* --slabs: a cache's name, or "" for all; NULL: not asked */
	uintptr_t address;     /* --address, --slab */
	bool whose, slab, log; /* which of them; log goes with an address or without */
	bool profile;          /* of a summary: live objects by the stack that allocated them */
	uint64_t last;         /* of the log: so many transactions at most */
};

void summary_write(struct json *, struct sy_heap *, const struct question *);
void slab_begin(struct json *, const char *key, const struct sy_slab *); /* an object, which the caller ends */
void whose_write(struct json *, const struct found *, const struct target *, const struct question *);

void profile_write(struct json *, const struct sy_heap *); /* profile.c */

/* log.c */
void log_write(struct json *, const struct found *, const struct question *);
const char *cache_name(const struct sy_cache *); /* or what stands for none */
void times_begin(const struct target *, const struct found *, uint64_t stopped_at);
void time_write(struct json *, uint64_t time); /* as "seconds_ago" */
void address_write(struct json *, const char *key, const void *address);

/* stacks.c: names of functions take long to find, one by one. So an answer is written twice, first to nowhere, which only notes
 * the stacks in it; stacks_look_up then finds all their names at once. */
void stacks_begin(const struct target *);
void stack_write(struct json *, const struct sy_heap *, uint32_t number);
void stacks_look_up(void);

#endif
