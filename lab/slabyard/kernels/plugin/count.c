/*
 * Counts what a kernel executes under QEMU: a plugin for qemu-system-x86_64 and qemu-system-aarch64.
 *
 *     -plugin count.so,symbols=FILE,counts=FILE[,stacks=FILE][,turn=N]
 *
 * A program of the guest says when counting begins and ends, by an instruction that does nothing: a long NOP with one of two
 * displacements, on arm64 a number for the register that is always zero (MARK_BEGIN, MARK_END; guest_files/measure.c has them).
 * Between the two, every instruction at a kernel's address counts for the function that it is in, and what it fetches, reads and
 * writes goes through simulated caches (caches.h). What programs execute is not counted, and the caches see nothing of it.
 *
 * Beside its function, an instruction has a part, which says for whom the function works. `symbols` gives each function its role;
 * a call of a function with a role begins a part, and its return ends that:
 *
 *     role                                part        begins
 *     a, f   allocation, free             FAST        outside and in PAGES: an operation, which is counted
 *     s      slow path                    SLOW        in FAST
 *     u      upkeep of the allocator      SLOW        outside: what it does by itself, such as a periodic visit
 *     p      page allocator               PAGES       in FAST and SLOW
 *     l      locks                        LOCKS       in all of these
 *     i, I   interrupts and exceptions    OUTSIDE     in all, up to their return
 *     w      switch of tasks              OUTSIDE     until the new task goes on with what it was in
 *
 * So a lock counts as LOCKS where the allocator takes it, and not at all where somebody else does. Calls and returns are followed by
 * a stack of ours for each CPU: a block that ends in a call pushes the address behind it, a block behind a return pops down to its own
 * address. A tail call therefore ends with its caller's return, as it should. Where a return finds nothing (a new task, a return
 * that is none), the part stays OUTSIDE or as it was. Every instruction of a program empties the stack.
 *
 * To look at every access to memory makes an emulator some ten times slower. So until the begin mark the plugin looks for marks alone,
 * in programs; there it has QEMU translate everything anew. It does not do so again at the end: QEMU 7.2 may then still call what it
 * has forgotten.
 *
 * QEMU runs all CPUs in one thread here (-icount), so nothing is atomic. Instructions are counted one by one by code that QEMU puts
 * in line; the number is charged to a function when the next block begins. So a block that a page fault leaves midway is charged
 * for what it executed. An instruction that repeats itself (rep movs) counts once, as in a processor's own counters, and reads
 * and writes all of it.
 *
 * `symbols` has a line for each function, by address: the address in hexadecimal, and its role, or `-`. The first line stands for
 * what is below all others. `counts`, written when QEMU ends, has the operations, and a line for each function (its line in
 * `symbols`, from 0) and part: calls, instructions, first-level misses, last-level misses. Without an end mark there is no file. Of
 * several pairs of marks the first counts.
 * tree.h says what `stacks` and `turn` add. With `stacks` there are no caches, which nobody asks for then and which take most of the time.
 */
#include "qemu.h"

#include "caches.h"
#include "tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MARK_BEGIN 0x51ab0001u
#define MARK_END   0x51ab0002u
#define ARM64_MARK 0x51a0u /* and 1 or 2 */

enum part { OUTSIDE, FAST, SLOW, PAGES, LOCKS, PARTS };
enum ending { ELSEWHERE, IN_CALL, IN_RETURN, IN_INTERRUPT_RETURN };
enum { MOST_FRAMES = 1024, LONGEST_PREFIXES = 15, TASKS = 1 << 14 };

struct function {
	uint64_t address;
	char role;
};

/* What a function costs in one part. */
struct cell {
	uint64_t calls, executed, first_misses, last_misses;
};

/* A translated block of the kernel's. */
struct block {
	uint64_t address, end; /* the first behind it */
	uint64_t last;         /* its last instruction */
	unsigned function;
	enum ending ending;
	bool starts;           /* a function */
	bool pauses;           /* it ends in the instruction with which a CPU waits */
	unsigned count;        /* of instructions */
	bool repeats;          /* its first instruction may, which QEMU executes as a block again and again */
};

struct frame {
	uint64_t back;             /* where it returns to; 0: an interrupt */
	const struct block *block; /* of an interrupt: what ran before it */
	enum part part;            /* behind the return */
	uint32_t node;             /* likewise */
};

struct cpu {
	const struct block *last; /* NULL: a program, or nothing yet */
	enum part part;
	uint32_t node;            /* of the tree, where there is one */
	unsigned turn;            /* instructions of this turn */
	uint64_t stored;          /* while tasks are switched: the address last written to */
	bool switching;
	unsigned depth;
	struct frame frames[MOST_FRAMES];
};

/* A task that does not run, by the address at which the kernel keeps its stack pointer. */
struct task {
	uint64_t address; /* 0: none */
	unsigned depth;
	struct frame *frames;
};

EXPORTED int qemu_plugin_version = INTERFACE_VERSION;

static struct function *functions;
static size_t function_count;
static struct cell (*cells)[PARTS]; /* by function */
static struct cell nowhere, *charged_to = &nowhere;
static uint32_t charged_node;
static struct cpu cpus[MOST_CPUS];
static uint64_t executed, charged; /* instructions of the kernel: all, and those that a cell has already */
static uint64_t allocations, frees, by_programs; /* the latter: instructions */
static bool counting, ended;
static uint64_t plugin;
static const char *counts_path, *stacks_path;
static unsigned long turn_length; /* instructions; 0: as QEMU has it */
static bool arm64;
static struct task tasks[TASKS];

/* ---- Parts ------------------------------------------------------------------------------------------------------ */

static void push(struct cpu *cpu, uint64_t back, const struct block *block)
{
	if (cpu->depth == MOST_FRAMES) { /* what is so deep returns to nothing any more */
		memmove(cpu->frames, cpu->frames + MOST_FRAMES / 2, MOST_FRAMES / 2 * sizeof(*cpu->frames));
		cpu->depth = MOST_FRAMES / 2;
	}
	cpu->frames[cpu->depth++] = (struct frame){ back, block, cpu->part, cpu->node };
}

static void pop_to(struct cpu *cpu, unsigned depth)
{
	cpu->depth = depth;
	cpu->part = cpu->frames[depth].part;
	cpu->node = cpu->frames[depth].node;
}

/* A return has come to `address`. An interrupt's frames hide those of what it interrupted. */
static void come_back(struct cpu *cpu, uint64_t address)
{
	for (unsigned depth = cpu->depth; depth-- && cpu->frames[depth].back;)
		if (cpu->frames[depth].back == address) {
			pop_to(cpu, depth);
			return;
		}
	if (cpu->depth && cpu->frames[cpu->depth - 1].back)
		pop_to(cpu, cpu->depth - 1);
}

/* An interrupt is over: what ran before it goes on. */
static void resume(struct cpu *cpu)
{
	while (cpu->depth) {
		pop_to(cpu, cpu->depth - 1);
		if (!cpu->frames[cpu->depth].back) {
			cpu->last = cpu->frames[cpu->depth].block;
			return;
		}
	}
	cpu->part = OUTSIDE; /* a system call's return to its program, or a new task */
	cpu->node = ROOT;
	cpu->last = NULL;
}

static void begin_operation(struct cpu *cpu, uint64_t *count)
{
	if (cpu->part != OUTSIDE && cpu->part != PAGES)
		return;
	++*count;
	cpu->part = FAST;
}

static void enter(struct cpu *cpu, char role)
{
	switch (role) {
	case 'a':
		begin_operation(cpu, &allocations);
		break;
	case 'f':
		begin_operation(cpu, &frees);
		break;
	case 's':
		cpu->part = cpu->part == FAST ? SLOW : cpu->part;
		break;
	case 'u':
		cpu->part = cpu->part == OUTSIDE ? SLOW : cpu->part;
		break;
	case 'p':
		cpu->part = cpu->part == FAST || cpu->part == SLOW ? PAGES : cpu->part;
		break;
	case 'l':
		cpu->part = cpu->part == OUTSIDE ? OUTSIDE : LOCKS;
		break;
	case 'w':
		cpu->switching = true;
		cpu->part = OUTSIDE;
		break;
	default:
		break;
	}
}

static struct task *task_at(uint64_t address)
{
	size_t place = (address >> LINE_SHIFT) % TASKS;

	for (size_t tried = 0; tried < TASKS; tried++, place = (place + 1) % TASKS)
		if (tasks[place].address == address || !tasks[place].address) {
			tasks[place].address = address;
			return &tasks[place];
		}
	abort();
}

/* The CPU leaves a task and goes on with another one. What it was in the middle of, if anything, was kept when it was left. */
static void switch_tasks(struct cpu *cpu, uint64_t from, uint64_t to)
{
	struct task *left = task_at(from), *next = task_at(to);
	struct frame *kept = realloc(left->frames, (cpu->depth + 1) * sizeof(*kept));

	if (!kept)
		abort();
	memcpy(kept, cpu->frames, cpu->depth * sizeof(*kept));
	left->frames = kept;
	left->depth = cpu->depth;
	cpu->depth = next->depth;
	if (next->depth)
		memcpy(cpu->frames, next->frames, next->depth * sizeof(*kept));
	cpu->node = next->depth && stacks_path ? tree_call(cpu->frames[next->depth - 1].node, cpu->last->function) : ROOT;
	next->depth = 0;
}

/* What the block before has done to the stack; whether it called. One that goes on within itself was left by a page fault. */
static bool follow(struct cpu *cpu, const struct block *block)
{
	const struct block *last = cpu->last;

	while (last && last->ending == IN_INTERRUPT_RETURN) {
		resume(cpu);
		last = cpu->last;
	}
	if (!last || (block->address >= last->address && block->address < last->end))
		return false;
	if (last->ending == IN_CALL)
		push(cpu, last->end, NULL);
	else if (last->ending == IN_RETURN)
		come_back(cpu, block->address);
	return last->ending == IN_CALL;
}

static char role_of(const struct block *block)
{
	return functions[block->function].role;
}

/* An interrupt of a device comes through a table of entries (I), each of which leads to the same function (i). On arm64 all
 * exceptions come through one. */
static bool interrupts(const struct cpu *cpu, const struct block *block)
{
	if (cpu->last && role_of(cpu->last) == 'I')
		return false;
	return role_of(block) == 'I' || (role_of(block) == 'i' && block->starts);
}

/* ---- Begin and end ----------------------------------------------------------------------------------------------- */

static void translate(uint64_t id, struct qemu_plugin_tb *);
static void write_counts(uint64_t id, void *unused);

static void count_from_here(uint64_t id)
{
	counting = true;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	qemu_plugin_register_atexit_cb(id, write_counts, NULL);
}

/* ---- What runs -------------------------------------------------------------------------------------------------- */

static void charge(void)
{
	charged_to->executed += executed - charged;
	if (stacks_path)
		tree[charged_node].executed += executed - charged;
	charged = executed;
}

/* A block of so many instructions runs on the CPU. At the end of its turn the next CPU has one. */
static void take_turn(unsigned number, unsigned instructions_of_block, bool pauses)
{
	struct cpu *cpu = &cpus[number];

	if (!turn_length)
		return;
	cpu->turn += instructions_of_block;
	if (pauses && cpu->turn < turn_length && stacks_path)
		tree[cpu->node].waited += turn_length - cpu->turn;
	if (!pauses && cpu->turn < turn_length)
		return;
	cpu->turn = 0;
	if (!pauses)
		cpu_exit(qemu_get_cpu((int)number));
}

static void count_misses(unsigned levels)
{
	charged_to->first_misses += levels > 0;
	charged_to->last_misses += levels > 1;
}

static void kernel_block(unsigned number, void *its)
{
	const struct block *block = its;
	struct cpu *cpu = &cpus[number];
	bool called = true;

	if (!counting)
		return;
	charge();
	if (block->repeats && cpu->last && cpu->last->last == block->address) {
		charged++; /* that instruction once more: it has been counted */
		cpu->last = block;
		return;
	}
	if (interrupts(cpu, block)) {
		push(cpu, 0, cpu->last);
		cpu->part = OUTSIDE;
	} else {
		called = follow(cpu, block);
		if (block->starts)
			enter(cpu, role_of(block));
	}
	if (stacks_path) {
		cpu->node = called ? tree_call(cpu->node, block->function) : tree_jump(cpu->node, block->function);
		charged_node = cpu->node;
	}
	take_turn(number, block->count, block->pauses);
	cpu->last = block;
	charged_to = &cells[block->function][cpu->part];
	charged_to->calls += block->starts;
	if (stacks_path)
		return;
	for (uint64_t line = block->address >> LINE_SHIFT; line <= (block->end - 1) >> LINE_SHIFT; line++)
		count_misses(misses_fetch(number, line));
}

static void program_block(unsigned number, void *count)
{
	if (!counting)
		return;
	charge();
	charged_to = &nowhere;
	charged_node = ROOT;
	by_programs += (uintptr_t)count;
	cpus[number].last = NULL;
	cpus[number].part = OUTSIDE;
	cpus[number].node = ROOT;
	cpus[number].depth = 0;
	take_turn(number, (unsigned)(uintptr_t)count, false);
}

/* The switch of tasks writes to the old task's stack, then to the old task, and then reads from the new one. */
static void switch_access(unsigned number, uint32_t access, uint64_t address, void *unused)
{
	struct cpu *cpu = &cpus[number];

	(void)unused;
	if (!counting || !cpu->switching)
		return;
	if (qemu_plugin_mem_is_store(access)) {
		cpu->stored = address;
		return;
	}
	cpu->switching = false;
	switch_tasks(cpu, cpu->stored, address);
}

/* The kernel maps its memory in one piece, at its own addresses; a program's address means another page in each program. */
static void kernel_access(unsigned number, uint32_t access, uint64_t address, void *unused)
{
	uint64_t last = address + ((uint64_t)1 << qemu_plugin_mem_size_shift(access)) - 1;
	bool written = qemu_plugin_mem_is_store(access);

	(void)unused;
	if (!counting)
		return;
	if (!(address >> 63)) {
		struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(access, address);

		if (!place || qemu_plugin_hwaddr_is_io(place))
			return;
		last -= address;
		address = qemu_plugin_hwaddr_phys_addr(place);
		last += address;
	}
	for (uint64_t line = address >> LINE_SHIFT; line <= last >> LINE_SHIFT; line++)
		count_misses(misses_access(number, line, written));
}

static void begin(unsigned number, void *unused)
{
	(void)number;
	(void)unused;
	if (!counting && !ended)
		qemu_plugin_reset(plugin, count_from_here);
}

static void end(unsigned number, void *unused)
{
	(void)number;
	(void)unused;
	if (!counting)
		return;
	charge();
	counting = false;
	ended = true;
}

/* ---- What is translated ----------------------------------------------------------------------------------------- */

static unsigned function_at(uint64_t address)
{
	size_t low = 0, high = function_count;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (functions[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return (unsigned)low;
}

/* An instruction without its prefixes; `repeats`: one of them was that of a repetition. */
static const uint8_t *opcode(const uint8_t *byte, size_t size, bool *repeats)
{
	const uint8_t *stop = byte + (size > LONGEST_PREFIXES ? LONGEST_PREFIXES : size);

	*repeats = false;
	for (; byte < stop && (memchr("\x2e\x36\x3e\x26\x64\x65\x66\x67\xf0\xf2\xf3", *byte, 11) || (*byte & 0xf0) == 0x40); byte++)
		*repeats |= *byte == 0xf2 || *byte == 0xf3;
	return byte < stop ? byte : NULL;
}

/* An instruction of arm64. */
static uint32_t word_of(const struct qemu_plugin_insn *instruction)
{
	const uint8_t *byte = qemu_plugin_insn_data(instruction);

	return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
}

static enum ending ending_on_arm64(uint32_t word)
{
	if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000) /* bl, blr */
		return IN_CALL;
	if ((word & 0xfffffc1f) == 0xd65f0000) /* ret */
		return IN_RETURN;
	return word == 0xd69f03e0 ? IN_INTERRUPT_RETURN : ELSEWHERE; /* eret */
}

static enum ending ending_of(const struct qemu_plugin_insn *instruction)
{
	const uint8_t *start = qemu_plugin_insn_data(instruction);
	size_t size = qemu_plugin_insn_size(instruction);
	bool repeats;
	const uint8_t *byte = opcode(start, size, &repeats);
	unsigned extension = byte && byte + 1 < start + size ? byte[1] >> 3 & 7 : 0;

	if (arm64)
		return ending_on_arm64(word_of(instruction));
	if (!byte)
		return ELSEWHERE;
	switch (*byte) {
	case 0xe8:
		return IN_CALL;
	case 0xff:
		return extension == 2 || extension == 3 ? IN_CALL : ELSEWHERE;
	case 0xc2: case 0xc3: case 0xca: case 0xcb:
		return IN_RETURN;
	case 0xcf:
		return IN_INTERRUPT_RETURN;
	default:
		return ELSEWHERE;
	}
}

/* A string instruction with a prefix of repetition. */
static bool may_repeat(const struct qemu_plugin_insn *instruction)
{
	bool repeats;
	const uint8_t *byte = opcode(qemu_plugin_insn_data(instruction), qemu_plugin_insn_size(instruction), &repeats);

	if (arm64 || !byte || !repeats)
		return false;
	return (*byte >= 0x6c && *byte <= 0x6f) || (*byte >= 0xa4 && *byte <= 0xa7) || (*byte >= 0xaa && *byte <= 0xaf);
}

/* How a CPU waits: rep nop; on arm64 yield and wfe. */
static bool pauses(const struct qemu_plugin_insn *instruction)
{
	if (arm64)
		return word_of(instruction) == 0xd503203f || word_of(instruction) == 0xd503205f;
	return qemu_plugin_insn_size(instruction) == 2 && !memcmp(qemu_plugin_insn_data(instruction), "\xf3\x90", 2);
}

/* nopl DISPLACEMENT(%rax): the displacement, 0 for anything else. On arm64 movz xzr, NUMBER. */
static uint32_t mark_of(const struct qemu_plugin_insn *instruction)
{
	const uint8_t *byte = qemu_plugin_insn_data(instruction);

	if (arm64) {
		uint32_t number = (word_of(instruction) ^ 0xd280001fu) >> 5;

		return (word_of(instruction) & 0x1f) == 0x1f && number - ARM64_MARK - 1 < 2 ? MARK_BEGIN + (number - ARM64_MARK - 1) : 0;
	}
	if (qemu_plugin_insn_size(instruction) != 7 || memcmp(byte, "\x0f\x1f\x80", 3))
		return 0;
	return (uint32_t)byte[3] | (uint32_t)byte[4] << 8 | (uint32_t)byte[5] << 16 | (uint32_t)byte[6] << 24;
}

static void look_for_marks(struct qemu_plugin_tb *translated)
{
	size_t count = qemu_plugin_tb_n_insns(translated);

	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(translated, i);
		uint32_t mark = mark_of(instruction);

		if (mark == MARK_BEGIN || mark == MARK_END)
			qemu_plugin_register_vcpu_insn_exec_cb(instruction, mark == MARK_BEGIN ? begin : end, NO_REGISTERS, NULL);
	}
}

static void translate_kernel(struct qemu_plugin_tb *translated)
{
	size_t count = qemu_plugin_tb_n_insns(translated);
	const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(translated, count - 1);
	struct block *block = malloc(sizeof(*block)); /* lives as long as QEMU: it does not say when a block goes */

	if (!block)
		abort();
	block->address = qemu_plugin_tb_vaddr(translated);
	block->last = qemu_plugin_insn_vaddr(last);
	block->end = block->last + qemu_plugin_insn_size(last);
	block->function = function_at(block->address);
	block->ending = ending_of(last);
	block->starts = block->address == functions[block->function].address;
	block->repeats = may_repeat(qemu_plugin_tb_get_insn(translated, 0));
	block->pauses = pauses(last);
	block->count = (unsigned)count;
	qemu_plugin_register_vcpu_tb_exec_cb(translated, kernel_block, NO_REGISTERS, block);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(translated, i);

		qemu_plugin_register_vcpu_insn_exec_inline(instruction, ADD_U64, &executed, 1);
		if (functions[block->function].role == 'w')
			qemu_plugin_register_vcpu_mem_cb(instruction, switch_access, NO_REGISTERS, READS_AND_WRITES, NULL);
		if (!stacks_path)
			qemu_plugin_register_vcpu_mem_cb(instruction, kernel_access, NO_REGISTERS, READS_AND_WRITES, NULL);
	}
}

static void translate(uint64_t id, struct qemu_plugin_tb *translated)
{
	(void)id;
	if (qemu_plugin_tb_vaddr(translated) >> 63) {
		translate_kernel(translated);
		return;
	}
	qemu_plugin_register_vcpu_tb_exec_cb(translated, program_block, NO_REGISTERS, (void *)(uintptr_t)qemu_plugin_tb_n_insns(translated));
	look_for_marks(translated);
}

static void translate_before(uint64_t id, struct qemu_plugin_tb *translated)
{
	(void)id;
	if (!(qemu_plugin_tb_vaddr(translated) >> 63))
		look_for_marks(translated);
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

static bool read_symbols(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t room = 0;
	uint64_t address;
	char role;

	if (!file)
		return false;
	while (fscanf(file, "%" SCNx64 " %c", &address, &role) == 2) {
		if (function_count == room) {
			struct function *more = realloc(functions, (room = 2 * room + 4096) * sizeof(*functions));

			if (!more)
				abort();
			functions = more;
		}
		functions[function_count++] = (struct function){ address, role };
	}
	fclose(file);
	cells = calloc(function_count ? function_count : 1, sizeof(*cells));
	return cells && function_count;
}

/* The last line tells that all others are there. */
static void finish(FILE *file, const char *path)
{
	bool failed;

	fputs("end\n", file);
	failed = ferror(file);
	if (fclose(file) || failed)
		fprintf(stderr, "count: %s: cannot be written\n", path);
}

static void write_counts(uint64_t id, void *unused)
{
	FILE *file;

	(void)id;
	(void)unused;
	if (!ended)
		return;
	file = fopen(counts_path, "w");
	if (!file) {
		fprintf(stderr, "count: %s: %s\n", counts_path, strerror(errno));
		return;
	}
	fprintf(file, "operations %" PRIu64 " %" PRIu64 "\n", allocations, frees);
	for (size_t function = 0; function < function_count; function++)
		for (unsigned part = 0; part < PARTS; part++) {
			const struct cell *cell = &cells[function][part];

			if (cell->executed || cell->first_misses)
				fprintf(file, "%zu %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", function, part, cell->calls,
				        cell->executed, cell->first_misses, cell->last_misses);
		}
	finish(file, counts_path);
	if (!stacks_path)
		return;
	file = fopen(stacks_path, "w");
	if (!file) {
		fprintf(stderr, "count: %s: %s\n", stacks_path, strerror(errno));
		return;
	}
	fprintf(file, "programs %" PRIu64 "\n", by_programs);
	tree_write(file);
	finish(file, stacks_path);
}

static const char *value_of(const char *argument, const char *name)
{
	size_t length = strlen(name);

	return strncmp(argument, name, length) || argument[length] != '=' ? NULL : argument + length + 1;
}

EXPORTED int qemu_plugin_install(uint64_t id, const struct qemu_info *about, int count, char **arguments)
{
	const char *symbols = NULL;

	for (int i = 0; i < count; i++) {
		const char *value = value_of(arguments[i], "symbols");

		symbols = value ? value : symbols;
		value = value_of(arguments[i], "counts");
		counts_path = value ? value : counts_path;
		value = value_of(arguments[i], "stacks");
		stacks_path = value ? value : stacks_path;
		value = value_of(arguments[i], "turn");
		turn_length = value ? strtoul(value, NULL, 10) : turn_length;
	}
	if (!symbols || !counts_path || !about->system_emulation || about->system.max_vcpus > MOST_CPUS) {
		fputs("count: needs symbols=FILE and counts=FILE, and a machine of at most 16 CPUs\n", stderr);
		return 1;
	}
	if (!read_symbols(symbols)) {
		fprintf(stderr, "count: %s: has no symbols\n", symbols);
		return 1;
	}
	arm64 = strcmp(about->target_name, "aarch64") == 0;
	if (turn_length && !(cpu_exit && qemu_get_cpu)) {
		fputs("count: this QEMU does not let a plugin end a CPU's turn\n", stderr);
		return 1;
	}
	tree_begin();
	cpu_count = (unsigned)about->system.max_vcpus;
	plugin = id;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate_before);
	return 0;
}
