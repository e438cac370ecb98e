/* The inputs that are kept, without libFuzzer:  fuzz_NAME FOLDER. Each input found a mistake, or reaches far into the code. */
#include "fuzz.h"

#include <dirent.h>

#define MOST_BYTES 65536

static bool run_file(const char *folder, const char *name)
{
	static uint8_t room[MOST_BYTES];
	char path[4096];
	FILE *file;
	uint8_t *data;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file)
		return false;
	size = fread(room, 1, sizeof(room), file);
	fclose(file);
	data = malloc(size ? size : 1); /* of this size, so that a sanitizer sees its end */
	if (!data)
		return false;
	memcpy(data, room, size);
	fprintf(stderr, "%s\n", path); /* the last one before a crash */
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return true;
}

int main(int argc, char **argv)
{
	DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
	unsigned count = 0;

	if (!folder) {
		fprintf(stderr, "%s: name a folder with inputs\n", argv[0]);
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(folder));)
		if (entry->d_name[0] != '.')
			count += run_file(argv[1], entry->d_name);
	closedir(folder);
	printf("%u inputs\n", count);
	return count ? 0 : 1;
}
