/*
 * One allocator, populated once, and the passes over it.
 *
 * What a trace starts with (a machine's free lists, hundreds of thousands of objects older than the trace) often takes longer to
 * set up than the trace to run. So this process sets it up once, and then runs nothing itself: each pass is a child that begins
 * with a copy of this state (child.c). All passes see the same objects at the same addresses.
 *
 * Serving. To compare allocators the lab starts one such process for each, and has them run their passes in turns by writing the
 * names of passes (exact, timed, latency) to their standard inputs. Each answer is a JSON object on a line of its own. The
 * warm-up comes before the first pass, when nobody measures yet. A pass that is refused ends the server.
 */
#define _GNU_SOURCE /* getline */
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "replay.h"

static const char *const names[PASSES] = {
	[PASS_EXACT] = "exact",         [PASS_TIMED] = "timed",
	[PASS_LATENCY] = "latency",     [PASS_COST] = "cost",
	[PASS_BUDDYINFO] = "buddyinfo", [PASS_PAGETYPEINFO] = "pagetypeinfo",
	[PASS_SLABINFO] = "slabinfo",
	[PASS_SLABS] = "slabs",
};

enum pass pass_named(const char *name)
{
	unsigned i = 0;

	while (i < PASSES && strcmp(names[i], name) != 0)
		i++;
	return (enum pass)i;
}

bool stage_prepare(struct stage *stage, const struct scratch *scratch, bool pages, const struct pass_options *options,
                   struct fault *fault)
{
	*stage = (struct stage){ .options = options };
	return driver_prepare(&stage->driver, scratch, pages, &options->driver, fault);
}

bool stage_open(struct stage *stage, const struct spec *spec, struct fault *fault)
{
	return driver_open(&stage->driver, spec, &stage->options->driver, fault) && driver_populate(&stage->driver, fault);
}

void stage_close(struct stage *stage)
{
	driver_destroy(&stage->driver);
	resident_destroy(stage->resident);
}

/* ---- One pass ------------------------------------------------------------------------------------------------- */

/* What a child is to do. */
struct order {
	struct stage *stage;
	enum pass pass;
};

static bool write_pass(const struct order *order, struct json *json, struct fault *fault)
{
	switch (order->pass) {
	case PASS_EXACT:
		return exact_pass(json, order->stage, fault);
	case PASS_TIMED:
		timed_pass(json, order->stage);
		return true;
	case PASS_LATENCY:
		return latency_pass(json, order->stage, fault);
	case PASS_COST:
		cost_pass(json, order->stage);
		return true;
	default:
		return proc_pass(json->out, order->pass, order->stage, fault);
	}
}

static bool carry_out(void *context, struct fault *fault)
{
	const struct order *order = context;
	struct json json;

	json_begin(&json, stdout);
	json.one_line = order->stage->serves;
	if (!write_pass(order, &json, fault))
		return false;
	if (order->pass <= PASS_COST)
		return json_finish(&json, fault);
	return (fflush(stdout) == 0 && !ferror(stdout)) || refuse_output(fault);
}

bool stage_run(struct stage *stage, enum pass pass, struct fault *fault)
{
	struct order order = { stage, pass };

	if ((pass == PASS_TIMED || pass == PASS_LATENCY) && !warm_up(stage, fault))
		return false;
	if (pass == PASS_COST) /* valgrind writes a file for each process, and here one is enough */
		return carry_out(&order, fault);
	return child_run(carry_out, &order, fault);
}

/* ---- Serving -------------------------------------------------------------------------------------------------- */

static bool serve_line(struct stage *stage, char *line, struct fault *fault)
{
	enum pass pass;

	line[strcspn(line, "\n")] = '\0';
	pass = pass_named(line);
	if (pass > PASS_LATENCY)
		return refuse(fault, "no pass is called %s: it can be exact, timed or latency", line);
	return stage_run(stage, pass, fault);
}

bool stage_serve(struct stage *stage, struct fault *fault)
{
	size_t room = 0;
	char *line = NULL;
	bool good = warm_up(stage, fault);

	stage->serves = true;
	while (good && getline(&line, &room, stdin) >= 0)
		good = serve_line(stage, line, fault);
	free(line);
	return good;
}
