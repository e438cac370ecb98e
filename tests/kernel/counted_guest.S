/*
 * A guest of one sector for the plugin that counts (lab/slabyard/kernels/plugin): it has functions named as a kernel's are, at a
 * kernel's addresses, and every instruction of them is known.
 *
 * The BIOS starts it at 0x7c00. It goes to 64 bits, with the first 2 MiB of memory at 0 and at BASE. What runs at the lower addresses
 * is a program to the plugin, what runs at BASE a kernel. The program calls `serve` TURNS times between the two marks, then ends
 * QEMU (isa-debug-exit). test_kernel_cost.py has what there is to count.
 */
.set BASE, 0xffffffff80000000
.set TURNS, 10

.macro call_high name
	movabs $(BASE + \name), %rax
	call *%rax
.endm

.section .text
.code16
.globl _start
_start:
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	mov %ax, %ss
	mov $0x7c00, %sp
	cld
	mov $0x1000, %di
	mov $0x0c00, %cx
	xor %eax, %eax
	rep stosl
	movw $0x2003, 0x1000
	movw $0x2003, 0x1ff8
	movw $0x3003, 0x2000
	movw $0x3003, 0x2ff0
	movw $0x0083, 0x3000
	mov %cr4, %eax
	or $0x20, %al
	mov %eax, %cr4
	mov $0x1000, %eax
	mov %eax, %cr3
	mov $0xc0000080, %ecx
	rdmsr
	or $1, %ah
	wrmsr
	mov %cr0, %eax
	or $0x80000001, %eax
	mov %eax, %cr0
	lgdt descriptors_at
	ljmp $8, $long_mode

.code64
long_mode:
	movabs $(BASE + 0x6000), %rsp
	lidt gates_at
	mov $TURNS, %ebx
	nopl 0x51ab0001(%rax)
again:
	call_high serve
	dec %ebx
	jnz again
	nopl 0x51ab0002(%rax)
	mov $0xf4, %dx
	out %al, %dx
	hlt

/* 6 instructions beside the allocator's. */
.globl serve, kmem_cache_alloc, ___slab_alloc, __alloc_pages, _raw_spin_lock, kfree, kfree_later, asm_exc_test, end
serve:
	movabs $(BASE + 0x5000), %rdx
	call kmem_cache_alloc
	call _raw_spin_lock
	call kfree_later
	nop
	ret

/* 4 on the fast path; an interrupt; the slow path */
kmem_cache_alloc:
	mov (%rdx), %rax
	int $0
	call ___slab_alloc
	ret

/* 3: a call of itself is no operation */
___slab_alloc:
	call __alloc_pages
	call kfree
	ret

/* 3, and 33 bytes read and written, which is one instruction */
__alloc_pages:
	call _raw_spin_lock
	nop
	ret

/* 2 */
_raw_spin_lock:
	nop
	ret

/* 4, and a store of which 8 bytes are in another line than the rest */
kfree:
	mov $33, %ecx
	lea 0x100(%rdx), %rdi
	rep stosb
	mov %rax, 0x3c(%rdx)
	ret

/* 1: its call is a jump */
kfree_later:
	jmp kfree

/* 2, beside the allocator's */
asm_exc_test:
	nop
	iretq

end:
descriptors:
	.quad 0
	.quad 0x00af9a000000ffff
descriptors_at:
	.word descriptors_at - descriptors - 1
	.long descriptors
/* Gate 0: of the segment 8, at BASE + asm_exc_test. */
gates:
	.word asm_exc_test, 8
	.word 0x8e00, 0x8000
	.long 0xffffffff, 0
gates_at:
	.word 15
	.quad gates
.org 510
	.word 0xaa55
