#!/bin/busybox sh
# project FOLDER FILES: makes a folder of C sources, of 20 functions each, with a makefile that compiles, assembles and links them.
mkdir -p "$1" && cd "$1" || exit 1
for file in $(seq "$2"); do
	for function in $(seq 20); do
		printf 'struct item%s { struct item%s *next; long key; char name[%s]; };\n' "$function" "$function" $((function * 8))
		printf 'long f%s_%s(struct item%s *item, long key)\n{\n\tlong sum = 0;\n\n' "$file" "$function" "$function"
		printf '\tfor (; item; item = item->next)\n\t\tif (item->key == key %% %s)\n\t\t\tsum += item->name[key & 7];\n' $((function + 3))
		printf '\treturn sum * %s;\n}\n' "$file"
	done >"part$file.c"
done
cat >Makefile <<'END'
parts := $(patsubst %.c,%.o,$(wildcard *.c))

whole.o: $(parts)
	ld -r -o $@ $(parts)

%.o: %.c
	cc1 -quiet -O1 -o $*.s $<
	as -o $@ $*.s
	rm $*.s

clean:
	rm -f *.o *.s
END
