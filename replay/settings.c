/*
 * Many settings of an allocator over one trace.
 *
 * A search for the best tunables replays a trace a thousand times. This process sets up once what these replays share: the steps,
 * and the machine's pages in the state that the recorded kernel reported, which takes half of the time of a short replay. All else
 * depends on the setting: the heap and the objects older than the trace. So for each setting the pages are set back to that state
 * (rewind.c), and the allocator is opened and populated on them. The exact pass runs for its scalar measures alone: without curves,
 * caches and call sites, which take longer to count and to write than a short trace takes to run.
 *
 * Standard input names the settings, a spec on each line; each is answered with one line:
 *
 *   {"exact": {...}}       its measures, as the exact pass has them
 *   {"refused": "..."}     why there are none: no such tunable, or too little memory for this setting
 *
 * A setting that is refused says nothing of the next one. Two such processes keep two processors busy.
 */
#define _GNU_SOURCE /* getline */
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "exact.h"
#include "rewind.h"

#define FEWEST_POINTS 2u /* of the curves, which nobody reads */

static bool write_figures(struct stage *stage, struct fault *fault)
{
	struct exact exact;
	struct json json;

	if (!exact_run(&exact, stage, true, fault))
		return false;
	json_begin(&json, stdout);
	json.one_line = true;
	exact_write(&json, &exact);
	exact_release(&exact);
	return json_finish(&json, fault);
}

static bool write_refusal(const struct fault *why, struct fault *fault)
{
	struct json json;

	json_begin(&json, stdout);
	json.one_line = true;
	json_object(&json, NULL);
	json_string(&json, "refused", why->text);
	json_object_end(&json);
	return json_finish(&json, fault);
}

/* False: refused, see why. */
static bool parse(struct spec *spec, const char *text, struct fault *why)
{
	return spec_parse(spec, text, why) && (spec->policy || refuse(why, "a malloc has no tunables here"));
}

/* On a machine that is as it was saved. */
static bool answer(struct stage *stage, const struct rewind *rewind, const char *text, struct fault *fault)
{
	struct fault why;
	struct spec spec;

	if (!parse(&spec, text, &why))
		return write_refusal(&why, fault);
	if (!(stage_open(stage, &spec, &why) && write_figures(stage, &why)) && !write_refusal(&why, fault))
		return false;
	driver_forget(&stage->driver);
	return rewind_back(rewind, fault);
}

/* Without a machine each setting is refused. */
static bool answer_without(const struct fault *impossible, const char *text, struct fault *fault)
{
	struct fault why;
	struct spec spec;

	return write_refusal(parse(&spec, text, &why) ? impossible : &why, fault);
}

struct server {
	struct stage stage;
	struct rewind *rewind; /* NULL: there is no machine, */
	struct fault impossible; /* for this reason */
};

static bool answer_all(void *context, struct fault *fault)
{
	struct server *server = context;
	size_t room = 0;
	char *line = NULL;
	bool good = !server->rewind || rewind_begin(server->rewind, fault);

	while (good && getline(&line, &room, stdin) >= 0) {
		line[strcspn(line, "\n")] = '\0';
		good = server->rewind ? answer(&server->stage, server->rewind, line, fault) : answer_without(&server->impossible, line, fault);
	}
	free(line);
	return good;
}

bool settings_serve(const struct scratch *scratch, const struct pass_options *options, struct fault *fault)
{
	struct pass_options brief = *options;
	struct server server = { .rewind = NULL };
	bool good;

	brief.points = FEWEST_POINTS;
	if (!stage_prepare(&server.stage, scratch, true, &brief, &server.impossible))
		return answer_all(&server, fault);
	server.rewind = rewind_save(server.stage.driver.pages, fault);
	good = server.rewind && child_run(answer_all, &server, fault);
	if (server.rewind)
		rewind_release(server.rewind);
	stage_close(&server.stage);
	return good;
}
