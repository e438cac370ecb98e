/*
 * The load spike of Bonwick 1994, section 5.2: eight forks make 256 processes, each of which creates a socket and waits.
 * Waits SECONDS (1 unless given; the paper's 60 only lengthens the trace), so that all are alive at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;

	for (int level = 0; level < 8; level++) {
		if (fork() < 0) {
			perror("spike: fork");
			return 1;
		}
	}

	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0) {
		perror("spike: socket");
		return 1;
	}
	sleep(seconds);
	close(fd);
	while (wait(NULL) > 0)
		;
	return 0;
}
