/* The kernel's lib/textsearch.c and lib/ts_kmp.c: a pattern is found where it stands. */
#include <linux/module.h>
#include <linux/string.h>
#include <linux/textsearch.h>

int main(void)
{
	static const char text[] = "slab, slub and slob";
	struct ts_config *search;
	struct ts_state state;
	unsigned at;

	if (init_module())
		return 1;
	search = textsearch_prepare("kmp", "slob", 4, GFP_KERNEL, 0);
	if (IS_ERR(search))
		return 2;
	at = textsearch_find_continuous(search, &state, text, strlen(text));
	textsearch_destroy(search);
	cleanup_module();
	return at != 15;
}
