/*
 * The kernel's heap: its creation at boot, and what drives it besides calls.
 *
 * Boot. `slabyard=POLICY:TUNABLE=VALUE,…` on the command line names the policy. It is read before the first allocation. A spec that
 * makes no sense is reported in the log, and the default serves: a kernel without an allocator could not say what is wrong.
 *
 * Time. Policies with periodic work for each slot (SLAB, SLQB) say which slot is due next and when (sy_heap.tick_slot, tick_due). A
 * work item then runs on that slot's CPU, and again for the next one. If the CPU is off, its slot is empty, so the work may run on
 * any CPU.
 *
 * Pressure. A shrinker has every CPU give back what its slots and its node's lists can spare, at most once in PRESSURE_PERIOD. The
 * reclaiming CPU does so at once, the others by work items. The shrinker always offers a few pages: only a look would tell how
 * much empty slabs hold.
 *
 * When a CPU has gone offline, another one drains its slots before any other can use them.
 */
#include "port.h"

#include "core/this_slot.h"
#include "core/list.h"

#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/workqueue.h>

#define PRESSURE_PERIOD (HZ / 2)
#define OFFERED_PAGES 128ul

struct sy_heap *sy__linux_heap;
bool sy__everybody_waits;

/* ---- The command line ------------------------------------------------------------------------------------------- */

static char spec[200] = SY_DEFAULT_SPEC; /* see Makefile */

/* The text of debug= reaches to the end. It is not a policy's. */
static int __init set_spec(char *text)
{
	char *debug;

	if (!text)
		return 0;
	strscpy(spec, text, sizeof(spec));
	debug = strstr(spec, "debug=");
	if (debug && debug > spec && strchr(":,", debug[-1])) {
		debug[-1] = '\0';
		sy__linux_debug_read(debug + strlen("debug="));
	}
	return 0;
}
early_param("slabyard", set_spec);

static int __init find_tunable(const struct sy_policy *policy, const char *name)
{
	for (unsigned i = 0; i < policy->tunable_count; i++)
		if (!strcmp(policy->tunables[i].name, name))
			return i;
	return -1;
}

/* A number, `auto` where there is that, or one of the tunable's words. */
static bool __init read_value(const struct sy_tunable *tunable, const char *text, int64_t *value)
{
	long long number;

	if (tunable->combines) /* not tried in a kernel yet */
		return !strcmp(text, tunable->choices[0]);
	for (int64_t i = 0; tunable->choices && i <= tunable->max; i++)
		if (!strcmp(tunable->choices[i], text)) {
			*value = i;
			return true;
		}
	if (!strcmp(text, "auto") && tunable->default_value == SY_TUNABLE_AUTO) {
		*value = SY_TUNABLE_AUTO;
		return true;
	}
	if (kstrtoll(text, 0, &number) || number < tunable->min || number > tunable->max)
		return false;
	*value = number;
	return true;
}

static bool __init read_settings(struct sy_heap_config *config, char *rest, const char *text);

static bool __init read_preset(struct sy_heap_config *config, const char *name, const char *text)
{
	const struct sy_policy *policy = config->policy;
	char settings[sizeof(spec)];

	for (unsigned i = 0; i < policy->preset_count; i++)
		if (!strcmp(policy->presets[i].name, name)) {
			strscpy(settings, policy->presets[i].settings, sizeof(settings));
			return read_settings(config, settings, text);
		}
	return false;
}

/* text: the spec. */
static bool __init read_setting(struct sy_heap_config *config, char *setting, const char *text)
{
	char *value = strchr(setting, '=');
	int tunable;

	if (!value)
		return read_preset(config, setting, text);
	*value++ = '\0';
	tunable = find_tunable(config->policy, setting);
	return tunable >= 0 && read_value(&config->policy->tunables[tunable], value, &config->tunables[tunable]);
}

static bool __init read_settings(struct sy_heap_config *config, char *rest, const char *text)
{
	char *part;

	while ((part = strsep(&rest, ",")))
		if (!read_setting(config, part, text)) {
			pr_err("slabyard=%s: %s cannot be set to that; " SY_DEFAULT_SPEC " serves\n", text, part);
			return false;
		}
	return true;
}

static bool __init read_spec(struct sy_heap_config *config, const char *text)
{
	static char buffer[sizeof(spec)] __initdata;
	const struct sy_policy *policy;
	char *rest = buffer;

	strscpy(buffer, text, sizeof(buffer));
	policy = sy_policy_find(strsep(&rest, ":"));
	if (!policy) {
		pr_err("slabyard=%s: no policy has this name; " SY_DEFAULT_SPEC " serves\n", text);
		return false;
	}
	sy_heap_defaults(policy, config);
	return read_settings(config, rest, text);
}

/* The node itself, or, if it has CPUs but no memory, the nearest one that has. */
static int __init nearest_memory(int node)
{
	int nearest = node_state(node, N_NORMAL_MEMORY) ? node : first_node(node_states[N_NORMAL_MEMORY]), other;

	for_each_node_state(other, N_NORMAL_MEMORY)
		if (node_distance(node, other) < node_distance(node, nearest))
			nearest = other;
	return nearest;
}

/* The call that found the bug is given up. */
static void tell_bug(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	pr_err("slabyard: %s: 0x%px\n", sy_bug_name(kind), address);
	dump_stack();
}

struct sy_heap *__init sy__linux_boot(void)
{
	static uint8_t slot_nodes[SY_MAX_SLOTS] __initdata;
	struct sy_heap_config config;
	unsigned cpu;

	if (!read_spec(&config, spec))
		sy_heap_defaults(sy_policy_find(SY_DEFAULT_SPEC), &config);
	if (nr_cpu_ids > SY_MAX_SLOTS / 2)
		panic("slabyard serves at most %u CPUs; boot with nr_cpus=%u\n", SY_MAX_SLOTS / 2, SY_MAX_SLOTS / 2);
	if (nr_node_ids > SY_MAX_NODES)
		panic("slabyard serves at most %u memory nodes, here are %u; boot with numa=off\n", SY_MAX_NODES, nr_node_ids);
	config.cpus = nr_cpu_ids;
	config.slots = sy__quick_calls(config.policy) ? 2 * nr_cpu_ids : nr_cpu_ids;
	for_each_possible_cpu(cpu)
		for (unsigned slot = cpu; slot < config.slots; slot += nr_cpu_ids)
			slot_nodes[slot] = nearest_memory(max(cpu_to_node(cpu), 0));
	config.concurrent = true;
	config.slot_nodes = slot_nodes;
	config.sizing.align = ARCH_KMALLOC_MINALIGN > sizeof(void *) ? ARCH_KMALLOC_MINALIGN : 0;
	sy__linux_debug(&config.debug);
	if (sy__heap_refuses(&config))
		panic("slabyard=%s: %s\n", spec, sy__heap_refuses(&config));
	sy__linux_pages_init();
	sy__linux_heap = sy_heap_create(&sy__linux_pages, &config);
	if (!sy__linux_heap)
		panic("slabyard=%s: no memory for the heap\n", spec);
	sy__linux_heap->kfree_frees_all = true;
	sy__linux_heap->on_bug = tell_bug;
	pr_info("slabyard: %s, %u slots, %u nodes\n", sy__linux_heap->policy->name, sy__linux_heap->slots, sy__linux_heap->nodes);
	return sy__linux_heap;
}

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static void tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(tick_work, tick);

static void plan_tick(void)
{
	struct sy_heap *heap = sy__linux_heap;
	uint64_t due = sy__time(&heap->tick_due), now = sy__now();
	unsigned cpu = heap->tick_slot % nr_cpu_ids;

	if (!cpu_online(cpu))
		cpu = WORK_CPU_UNBOUND;
	queue_delayed_work_on(cpu, system_wq, &tick_work, due > now ? nsecs_to_jiffies(due - now) + 1 : 1);
}

static void tick(struct work_struct *work)
{
	struct sy_heap *heap = sy__linux_heap;
	unsigned long flags;

	sy__begin(&flags, SY__GFP_NONE);
	sy__log(SY__LOG_TICK, NULL, 0, 0, NUMA_NO_NODE);
	heap->policy->tick(heap);
	sy__end(flags);
	plan_tick();
}

/* ---- Pressure --------------------------------------------------------------------------------------------------- */

static unsigned long last_pressure;
static DEFINE_PER_CPU(struct work_struct, pressure_work);

static uint64_t give_at_once(struct sy_heap *heap, sy__giver giver)
{
	unsigned long flags;
	uint64_t pages;

	sy__begin(&flags, SY__GFP_NONE);
	sy__log(SY__LOG_GIVE, NULL, 0, 0, NUMA_NO_NODE);
	pages = sy__heap_give(heap, giver);
	sy__end(flags);
	return pages;
}

/* Has the cache with this number give pages back. False: there is no such cache. */
static bool give_of(struct sy_heap *heap, sy__giver giver, unsigned number, uint64_t *pages)
{
	struct sy_list *at;
	struct page *kept;
	unsigned long flags;
	bool there;

	sy__begin(&flags, SY__GFP_NONE);
	sy__keep_begin();
	sy__lock(&heap->lock);
	at = heap->caches.next;
	while (number && at != &heap->caches) {
		at = at->next;
		number--;
	}
	there = at != &heap->caches;
	if (there)
		*pages += giver(sy__entry(at, struct sy_cache, link));
	sy__unlock(&heap->lock);
	kept = sy__keep_end();
	sy__end(flags);
	sy__let_go(kept);
	return there;
}

/* Gives back what this CPU's slots and the nodes' lists can spare, cache by cache. The task may move to another CPU in between.
 * Interrupts and other CPUs wait for one cache at most, as in Linux's own shrinking. With a log it is one call, as the log has it. If
 * a cache is created or destroyed meanwhile, another one may be skipped. */
static uint64_t give_on_this_cpu(void)
{
	struct sy_heap *heap = sy__linux_heap;
	sy__giver giver = heap->policy->reap ? heap->policy->reap : heap->policy->shrink;
	unsigned number = 0;
	uint64_t pages = 0;

	if (sy__log_is_on)
		return give_at_once(heap, giver);
	while (give_of(heap, giver, number, &pages))
		number++;
	return pages;
}

static void give_on_cpu(struct work_struct *work)
{
	give_on_this_cpu();
}

static unsigned long offer(struct shrinker *shrinker, struct shrink_control *control)
{
	return time_before(jiffies, READ_ONCE(last_pressure) + PRESSURE_PERIOD) ? 0 : OFFERED_PAGES;
}

static unsigned long give(struct shrinker *shrinker, struct shrink_control *control)
{
	unsigned cpu;

	if (!offer(shrinker, control))
		return SHRINK_STOP;
	WRITE_ONCE(last_pressure, jiffies);
	for_each_online_cpu(cpu)
		if (cpu != raw_smp_processor_id())
			queue_work_on(cpu, system_wq, per_cpu_ptr(&pressure_work, cpu));
	return give_on_this_cpu();
}

/* ---- CPUs that go ----------------------------------------------------------------------------------------------- */

static int cpu_dead(unsigned cpu)
{
	struct sy_heap *heap = sy__linux_heap;
	unsigned long flags;

	sy__begin(&flags, SY__GFP_NONE);
	for (unsigned slot = cpu; slot < heap->slots; slot += nr_cpu_ids)
		heap->policy->drain(heap, slot);
	sy__end(flags);
	return 0;
}

static int __init start(void)
{
	struct sy_heap *heap = sy__linux_heap;
	unsigned cpu;

	for_each_possible_cpu(cpu)
		INIT_WORK(per_cpu_ptr(&pressure_work, cpu), give_on_cpu);
	last_pressure = jiffies;
	if (heap->policy->tick && sy__time(&heap->tick_due))
		plan_tick();
	if (heap->policy->drain)
		WARN_ON(cpuhp_setup_state_nocalls(CPUHP_SLUB_DEAD, "mm/slabyard:dead", NULL, cpu_dead) < 0);
	if (heap->policy->reap || heap->policy->shrink)
		WARN_ON(!sy__shrinker_start(offer, give));
	return 0;
}
subsys_initcall(start);
