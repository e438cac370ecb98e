/*
 * Many settings of an allocator over one trace.
 *
 * Whoever looks for the best tunables replays a trace a thousand times. What these replays share this process sets up once: the steps,
 * and the machine's pages in the state that the recorded kernel reported, which takes half of the time of a short replay. All else
 * depends on the setting: the heap and the objects older than the trace. So each setting is a child of its own (child.c) that
 * opens and populates its allocator on a copy of that machine, runs the exact pass and prints the scalar measures alone: without
 * curves, caches and call sites, which take longer to write and to read than a short trace takes to run.
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
	struct stage *prepared;
	const struct fault *impossible; /* why there is no machine; NULL: there is one */
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
	struct spec spec;

	if (!spec_parse(&spec, setting->text, fault))
		return false;
	if (!spec.policy)
		return refuse(fault, "a malloc has no tunables here");
	if (setting->impossible)
		return refuse(fault, "%s", setting->impossible->text);
	return stage_open(setting->prepared, &spec, fault) && write_figures(setting->prepared, fault);
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
	struct stage stage;
	struct fault impossible;
	struct setting setting = { .prepared = &stage };
	size_t room = 0;
	char *line = NULL;
	bool good = true;

	brief.points = FEWEST_POINTS;
	if (!stage_prepare(&stage, scratch, true, &brief, &impossible))
		setting.impossible = &impossible;
	while (good && getline(&line, &room, stdin) >= 0) {
		struct fault why;

		line[strcspn(line, "\n")] = '\0';
		setting.text = line;
		good = child_run(replay_setting, &setting, &why) || write_refusal(&why, fault);
	}
	free(line);
	if (!setting.impossible)
		stage_close(&stage);
	return good;
}
