/* A user of the C++ header. */
#include <slabyard/slabyard.hpp>

#include <cstdio>
#include <string>
#include <vector>

int main()
{
	slabyard::heap heap("slob");
	slabyard::memory_resource resource(heap);
	std::pmr::vector<std::pmr::string> words(&resource);

	for (int i = 0; i < 1000; i++)
		words.emplace_back("a word that is too long to be kept inside of its object");
	std::puts(words.size() == 1000 ? "served" : "not served");
}
