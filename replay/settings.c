/*
 * Many settings of an allocator over one trace.
 *
 * Whoever looks for the best tunables replays a trace a thousand times. What these replays share is the scratch file, which this
 * process has opened and mapped once. All else depends on the setting: the heap, the objects older than the trace, the pages
 * beneath them. So each setting is a child of its own (child.c) that sets up the machine, populates it, runs the exact pass and
 * prints the scalar measures alone: without curves, caches and call sites, which take longer to write and to read than a short trace
 * takes to run.
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

#define FEWEST_POINTS 2u /* of the curves, which nobody reads */

struct setting {
	const struct scratch *scratch;
	const struct pass_options *options;
	const char *text;
};

static bool write_figures(struct stage *stage, struct fault *fault)
{
	struct exact exact;
	struct json json;

	if (!exact_run(&exact, stage, fault))
		return false;
	json_begin(&json, stdout);
	json.one_line = true;
	exact_write(&json, &exact, true);
	exact_release(&exact);
	return json_finish(&json, fault);
}

static bool replay_setting(void *context, struct fault *fault)
{
	const struct setting *setting = context;
	struct stage stage;
	struct spec spec;

	if (!spec_parse(&spec, setting->text, fault))
		return false;
	if (!spec.policy)
		return refuse(fault, "a malloc has no tunables here");
	return stage_open(&stage, setting->scratch, &spec, setting->options, fault) && write_figures(&stage, fault);
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

bool settings_serve(const struct scratch *scratch, const struct pass_options *options, struct fault *fault)
{
	struct pass_options brief = *options;
	struct setting setting = { scratch, &brief, NULL };
	size_t room = 0;
	char *line = NULL;
	bool good = true;

	brief.points = FEWEST_POINTS;
	while (good && getline(&line, &room, stdin) >= 0) {
		struct fault why;

		line[strcspn(line, "\n")] = '\0';
		setting.text = line;
		good = child_run(replay_setting, &setting, &why) || write_refusal(&why, fault);
	}
	free(line);
	return good;
}
