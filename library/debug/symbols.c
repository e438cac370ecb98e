/*
 * Names of code addresses: functions by the modules' symbol tables, functions and lines by their debugging information.
 *
 * The dynamic linker knows exported names only. For the others, and for lines, addr2line is started once for each module, if it is
 * there (binutils), in an environment without preloaded libraries. The child shares no memory that matters: it only reads files. What a
 * program with more rights than its user does must not depend on PATH, so it starts nothing.
 */
#include "symbols.h"

#include "text.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_PATH "library/debug/symbols.c"
#define MOST 8192u /* addresses */
#define MOST_ASKED 64u /* of one module */

struct symbol {
	uintptr_t address;
	const char *module; /* path; NULL: unknown */
	unsigned inlined; /* frames that were told of it */
	bool asked, own;
	uintptr_t offset;   /* as addr2line takes it */
	char name[SY__SYMBOL_BYTES];
};

bool (*sy__symbols_locate)(uintptr_t address, const char **module, uintptr_t *offset);

static struct symbol *symbols; /* MOST of them, mapped when they are needed */
static size_t count;

#define PROGRAM "/proc/self/exe"

static const struct symbol *find(uintptr_t address)
{
	for (size_t i = 0; i < count; i++)
		if (symbols[i].address == address)
			return &symbols[i];
	return NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strcmp(path, PROGRAM) == 0)
		return program_invocation_short_name;

	return slash ? slash + 1 : path;
}

const char *sy__symbol_of(uintptr_t address)
{
	const struct symbol *symbol = find(address);

	return symbol ? symbol->name : "?";
}

bool sy__symbol_is_own(uintptr_t address)
{
	const struct symbol *symbol = find(address);

	return symbol && symbol->own;
}

/* Whether a source file is one of the library's: its path goes on as this file's does. */
static bool is_own_source(const char *path)
{
	size_t root = sizeof(__FILE__) - sizeof(OWN_PATH);

	return strncmp(path, __FILE__, root) == 0 &&
	       (strncmp(path + root, "core/", 5) == 0 || strncmp(path + root, "library/", 8) == 0 || strncmp(path + root, "malloc/", 7) == 0);
}

/* What the dynamic linker knows. False: nothing. */
static bool add_own(struct symbol *symbol, uintptr_t address)
{
	const ElfW(Ehdr) *header;
	Dl_info is;

	if (!dladdr((void *)(address - 1), &is) || !is.dli_fname || !is.dli_fbase)
		return false;
	header = is.dli_fbase;
	symbol->module = strchr(is.dli_fname, '/') ? is.dli_fname : PROGRAM;
	symbol->offset = address - 1 - (header->e_type == ET_DYN ? (uintptr_t)is.dli_fbase : 0);
	if (is.dli_sname)
		snprintf(symbol->name, sizeof(symbol->name), "%s+%#lx (%s)", is.dli_sname,
		         (unsigned long)(address - (uintptr_t)is.dli_saddr), base_name(is.dli_fname));
	else
		snprintf(symbol->name, sizeof(symbol->name), "%s+%#lx", base_name(is.dli_fname), (unsigned long)(symbol->offset + 1));
	return true;
}

static bool add_of_other(struct symbol *symbol, uintptr_t address)
{
	if (!sy__symbols_locate(address - 1, &symbol->module, &symbol->offset))
		return false;
	snprintf(symbol->name, sizeof(symbol->name), "%s+%#lx", base_name(symbol->module), (unsigned long)(symbol->offset + 1));
	return true;
}

static void add(uintptr_t address)
{
	struct symbol *symbol = &symbols[count];

	if (find(address) || count == MOST)
		return;
	count++;
	*symbol = (struct symbol){ .address = address };
	if (!(sy__symbols_locate ? add_of_other : add_own)(symbol, address))
		snprintf(symbol->name, sizeof(symbol->name), "%#lx", (unsigned long)address);
}

/* Reads one line of the child's answer. False: there is none. */
static bool read_line(int file, char *line, size_t bytes)
{
	size_t length = 0;
	char c;

	while (read(file, &c, 1) == 1) {
		if (c == '\n') {
			line[length] = '\0';
			return true;
		}
		if (length < bytes - 1)
			line[length++] = c;
	}
	return false;
}

/* Keeps what is known of one frame. Frames inlined into it come first, so the name is that of the innermost function, and goes on. */
static void add_frame(struct symbol *symbol, const char *function, char *place)
{
	char *remark = strstr(place, " ("), *to = symbol->name;
	size_t used = symbol->inlined ? strlen(to) : 0, room = sizeof(symbol->name) - used;

	if (remark)
		*remark = '\0';
	if (!symbol->inlined++)
		symbol->own = is_own_source(place);
	if (*function == '?')
		return;
	snprintf(to + used, room, "%s%.110s%s (%.60s)", used ? " inlined in " : "", function, strlen(function) > 110 ? "..." : "",
	         *place == '?' ? base_name(symbol->module) : base_name(place));
}

/* A line with each address, then two lines for each frame there: the function, then "path:line" with perhaps a remark. */
static void read_answers(int file, struct symbol **asked, size_t number)
{
	char function[SY__SYMBOL_BYTES], place[4096];
	size_t next = 0;

	while (read_line(file, function, sizeof(function))) {
		if (strncmp(function, "0x", 2) == 0)
			next++;
		else if (next && next <= number && read_line(file, place, sizeof(place)))
			add_frame(asked[next - 1], function, place);
	}
}

/* The child shares our memory until it runs the other program, and calls nothing that allocates or takes a lock. */
static pid_t start(char **arguments, int output)
{
	char *environment[] = { "LC_ALL=C", NULL };
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t child = vfork();

	if (child == 0) {
		dup2(output, STDOUT_FILENO);
		dup2(nothing, STDERR_FILENO);
		execvpe(arguments[0], arguments, environment);
		_exit(127);
	}
	close(nothing);
	return child;
}

static void ask(const char *module, struct symbol **asked, size_t number)
{
	static char offsets[MOST_ASKED][20], exe[4096];
	char *arguments[MOST_ASKED + 8] = { "addr2line", "-a", "-i", "-f", "-C", "-e" };
	ssize_t length = readlink(PROGRAM, exe, sizeof(exe) - 1);
	int ends[2];
	pid_t child;

	arguments[6] = (char *)(uintptr_t)module;
	if (strcmp(module, PROGRAM) == 0 && length > 0) {
		exe[length] = '\0';
		arguments[6] = exe;
	}
	for (size_t i = 0; i < number; i++) {
		snprintf(offsets[i], sizeof(offsets[i]), "%#lx", (unsigned long)asked[i]->offset);
		arguments[7 + i] = offsets[i];
	}
	if (pipe2(ends, O_CLOEXEC))
		return;
	child = start(arguments, ends[1]);
	close(ends[1]);
	if (child > 0) {
		read_answers(ends[0], asked, number);
		waitpid(child, NULL, 0);
	}
	close(ends[0]);
}

void sy__symbols_look_up(const uintptr_t *addresses, size_t number)
{
	size_t before = count;

	if (!symbols) {
		void *room = mmap(NULL, MOST * sizeof(*symbols), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (room == MAP_FAILED)
			return;
		symbols = room;
	}
	for (size_t i = 0; i < number; i++)
		add(addresses[i]);
	for (size_t i = before; i < count && !getauxval(AT_SECURE); i++) {
		struct symbol *asked[MOST_ASKED];
		size_t many = 0;

		for (size_t j = i; symbols[i].module && j < count && many < MOST_ASKED; j++) {
			if (!symbols[j].module || symbols[j].asked || strcmp(symbols[j].module, symbols[i].module))
				continue;
			symbols[j].asked = true;
			asked[many++] = &symbols[j];
		}
		if (many)
			ask(symbols[i].module, asked, many);
	}
}
