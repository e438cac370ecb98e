// Sampled objects of operator new, and the first allocation of a program and of a thread.
//
//   sampled_new delete   makes and deletes objects of many sizes by all forms of new
//   sampled_new past     writes a page past the end of its first object, of which it prints the address
//   sampled_new thread   the same of the first object of another thread
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct alignas(64) Wide {
	char bytes[64];
};

static void use_all()
{
	for (int round = 0; round < 50; round++) {
		std::map<int, std::string> names;

		for (int i = 0; i < 100; i++)
			names[i] = std::string(static_cast<size_t>(i * 7), 'n');
		for (size_t size = 0; size < 40; size++)
			delete[] new char[size];
		std::unique_ptr<Wide[]> wide(new Wide[3]);
		std::vector<char> large(9 << 20);
		delete new char;
	}
}

static void damage()
{
	volatile char *object = new char[100];

	std::printf("%p\n", const_cast<char *>(object));
	std::fflush(stdout);
	object[4096] = 1;
}

int main(int, char **argv)
{
	static char buffer[100];

	std::setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (!std::strcmp(argv[1], "delete"))
		use_all();
	else if (!std::strcmp(argv[1], "past"))
		damage();
	else
		std::thread(damage).join();
	std::puts("ok");
}
