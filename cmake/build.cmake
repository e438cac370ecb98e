# Writes HEADER: the version, and a hash of the library's SOURCES (paths from the folder ROOT). Two libraries with the same one have the
# same structures in memory, so slabyard-inspect can read the heaps of either.
set(hashes "")
foreach(source IN LISTS SOURCES)
  file(SHA256 ${ROOT}/${source} hash)
  string(APPEND hashes "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 16 hash)
file(WRITE ${HEADER} "#define SY__BUILD \"${VERSION} (${hash})\"\n")
