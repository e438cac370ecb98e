/*
 * Allocator specs, and what is known of an allocator without running it.
 *
 *   slub   slub:min_partial=0,max_order=1  a policy, as the library parses it (library/spec.c)
 *   malloc:system   malloc:/path/lib.so    the C library's malloc, or that of a library
 *
 * Lists and geometry come from the policies' own tables (sy_policy_describe): this file names no policy.
 */
#include "spec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "library/lab/replay.h"
#include "options.h"

#define MALLOC_PREFIX "malloc:"

static bool parse_malloc(struct spec *spec, const char *library, struct fault *fault)
{
	if (!*library)
		return refuse(fault, "malloc: which one? Write malloc:system or malloc:/path/lib.so");
	spec->policy = NULL;
	spec->library = strcmp(library, "system") == 0 ? NULL : library;
	return true;
}

bool spec_parse(struct spec *spec, const char *text, struct fault *fault)
{
	static const struct sy__spec_other other = { "malloc", "malloc:system", "malloc:system and malloc:/path/lib.so" };
	struct sy_heap_config config;
	struct sy_fault line;
	const char *refusal;

	*spec = (struct spec){ 0 };
	if (strcmp(text, "malloc") == 0)
		return parse_malloc(spec, "", fault);
	if (strncmp(text, MALLOC_PREFIX, strlen(MALLOC_PREFIX)) == 0)
		return parse_malloc(spec, text + strlen(MALLOC_PREFIX), fault);
	if (!sy__spec_parse(&config, text, &other, &line))
		return refuse(fault, "%s", line.text);
	refusal = sy_lab_refuses(&config);
	if (refusal)
		return refuse(fault, "%s", refusal);
	spec->policy = config.policy;
	memcpy(spec->tunables, config.tunables, sizeof spec->tunables);
	return true;
}

const char *spec_name(const struct spec *spec)
{
	struct sy_policy_description is = { .name = "malloc" };

	if (spec->policy)
		sy_policy_describe(spec->policy, &is);
	return is.name;
}

struct sy_heap_config spec_heap_config(const struct spec *spec, unsigned slots, unsigned nodes)
{
	struct sy_heap_config config;

	sy_heap_defaults(spec->policy, &config);
	config.slots = slots;
	config.nodes = nodes;
	memcpy(config.tunables, spec->tunables, sizeof config.tunables);
	return config;
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

static void list_tunable(struct json *json, const struct sy_tunable *tunable)
{
	json_object(json, NULL);
	json_string(json, "name", tunable->name);
	if (tunable->default_value == SY_TUNABLE_AUTO)
		json_string(json, "default", "auto");
	else if (tunable->choices)
		json_string(json, "default", tunable->choices[tunable->default_value]);
	else
		json_signed(json, "default", tunable->default_value);
	json_signed(json, "min", tunable->min);
	json_signed(json, "max", tunable->max);
	if (tunable->choices) {
		json_array(json, "choices");
		for (unsigned i = 0; i < sy_tunable_choices(tunable); i++)
			json_string(json, NULL, tunable->choices[i]);
		json_array_end(json);
	} else {
		json_null(json, "choices");
	}
	json_string(json, "meaning", tunable->meaning);
	json_object_end(json);
}

static void list_preset(struct json *json, const struct sy_preset *preset)
{
	json_object(json, NULL);
	json_string(json, "name", preset->name);
	json_string(json, "settings", preset->settings);
	json_string(json, "meaning", preset->meaning);
	json_object_end(json);
}

void spec_list(struct json *json)
{
	struct sy_policy_description is;

	json_array(json, NULL);
	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		sy_policy_describe(*at, &is);
		json_object(json, NULL);
		json_string(json, "name", is.name);
		json_string(json, "summary", is.summary);
		json_string(json, "paper", is.paper);
		json_array(json, "tunables");
		for (unsigned i = 0; i < is.tunable_count; i++)
			list_tunable(json, &is.tunables[i]);
		json_array_end(json);
		json_array(json, "presets");
		for (unsigned i = 0; i < is.preset_count; i++)
			list_preset(json, &is.presets[i]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

void spec_idle(struct json *json, const struct spec *spec, uint16_t kernel)
{
	struct sy_policy_description is = { 0 };
	struct sy_heap_config config = { 0 };

	if (spec->policy) {
		sy_policy_describe(spec->policy, &is);
		config = spec_heap_config(spec, 1, 1);
		config.kernel.version = kernel;
	}
	json_array(json, NULL);
	for (unsigned i = 0; i < is.tunable_count; i++)
		if (sy_lab_idle(&config, i))
			json_string(json, NULL, is.tunables[i].name);
	json_array_end(json);
}

/* The geometry of one size, if there is one. */
static bool geometry_of(const struct spec *spec, unsigned cpus, const char *text, uint64_t *size,
                        struct sy_geometry *geometry, struct fault *fault)
{
	const uint64_t most = (uint64_t)SY_PAGE_SIZE << SY_MAX_ORDER;

	if (!number_whole(text, 1, most, size))
		return refuse(fault, "%s is no object size: give bytes, 1 to %" PRIu64, text, most);
	if (!sy_lab_geometry(spec->policy, spec->tunables, cpus, (size_t)*size, geometry))
		return refuse(fault, "no slab of %s holds objects of %s bytes", spec_name(spec), text);
	return true;
}

bool spec_geometry(struct json *json, const struct spec *spec, unsigned cpus, char *const *sizes, int count,
                   struct fault *fault)
{
	struct sy_geometry geometry;
	uint64_t size;

	if (!spec->policy || !sy_lab_has_geometry(spec->policy))
		return refuse(fault, "%s has no slabs of one size of object, hence no geometry", spec_name(spec));
	if (!count)
		return refuse(fault, "geometry of which sizes? Give object sizes in bytes");
	for (int i = 0; i < count; i++)
		if (!geometry_of(spec, cpus, sizes[i], &size, &geometry, fault))
			return false;
	json_array(json, NULL);
	for (int i = 0; i < count && geometry_of(spec, cpus, sizes[i], &size, &geometry, fault); i++) {
		json_object(json, NULL);
		json_count(json, "size", size);
		json_count(json, "objects_per_slab", geometry.objects);
		json_count(json, "pages_per_slab", (uint64_t)1 << geometry.order);
		json_count(json, "wasted_bytes", geometry.wasted);
		json_count(json, "sheaf_capacity", geometry.sheaf_capacity);
		json_object_end(json);
	}
	json_array_end(json);
	return true;
}
