#include <errno.h>

/* Runs what a file of the kernel has as its module. -EAGAIN is how a test that has passed asks not to stay. */
int init_module(void);
void cleanup_module(void) __attribute__((__weak__));

int main(void)
{
	int wrong = init_module();

	if (!wrong && cleanup_module)
		cleanup_module();
	return wrong && wrong != -EAGAIN;
}
