#!/bin/busybox sh
# project FOLDER FILES: makes a folder of sources, of 60 functions each, with a makefile that expands, assembles and links them. They are a
# shorthand of assembly: a C compiler of today is too large a program for a guest.
mkdir -p "$1" && cd "$1" || exit 1
for file in $(seq "$2"); do
	for function in $(seq 60); do
		echo "FUNCTION f${file}_$function"
		echo "LOOP $function"
		echo "END f${file}_$function"
	done >"part$file.in"
done
cat >shorthand <<'END'
s/^FUNCTION \(.*\)/	.globl \1\n	.type \1, @function\n\1:\n	xorl %eax, %eax/
s/^LOOP \(.*\)/1:	movq 8(%rdi), %rdx\n	addq $\1, %rdx\n	imulq $\1, %rdx, %rcx\n	addq %rcx, %rax\n	movq (%rdi), %rdi\n	testq %rdi, %rdi\n	jne 1b/
s/^END \(.*\)/	ret\n	.size \1, .-\1/
END
cat >Makefile <<'END'
parts := $(patsubst %.in,%.o,$(wildcard *.in))

whole.o: $(parts)
	ld -r -o $@ $(parts)

%.o: %.in shorthand
	sed -f shorthand $< | tee $*.s | as -o $@ -
	rm $*.s

clean:
	rm -f *.o *.s
END
