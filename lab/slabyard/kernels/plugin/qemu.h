/*
 * What our plugin uses of QEMU's interface for plugins, version 1 (QEMU 4.2 to 8.2).
 *
 * Distributions ship a QEMU that loads plugins, but not the header that declares the interface. The functions are documented in
 * QEMU's manual ("QEMU TCG Plugins"); those declared here are all that count.c calls. QEMU resolves them when it loads the plugin.
 *
 * A block is what QEMU translates at once: instructions without a jump between them. It calls `translated` for each block that it
 * translates. There a plugin asks for calls: whenever the block runs, whenever one of its instructions runs, whenever one of them
 * reads or writes memory. Blocks are translated anew from time to time, and the handles are valid within `translated` alone.
 */
#ifndef SLABYARD_PLUGIN_QEMU_H
#define SLABYARD_PLUGIN_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

enum { INTERFACE_VERSION = 1 };
enum qemu_plugin_cb_flags { NO_REGISTERS };
enum qemu_plugin_mem_rw { READS = 1, WRITES, READS_AND_WRITES };
enum qemu_plugin_op { ADD_U64 };

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

struct qemu_info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus, max_vcpus;
	} system;
};

typedef void translation_fn(uint64_t id, struct qemu_plugin_tb *);
typedef void execution_fn(unsigned cpu, void *data);
typedef void access_fn(unsigned cpu, uint32_t access, uint64_t address, void *data);
typedef void exit_fn(uint64_t id, void *data);
typedef void reset_fn(uint64_t id);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translation_fn *);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, execution_fn *, enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, execution_fn *, enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op, void *counter, uint64_t addend);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, access_fn *, enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw,
                                      void *data);
/* Forgets all that the plugin has asked for, and all translated blocks; then calls `then`. Soon, not at once. */
void qemu_plugin_reset(uint64_t id, reset_fn *then);
void qemu_plugin_register_atexit_cb(uint64_t id, exit_fn *, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t number);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);

unsigned qemu_plugin_mem_size_shift(uint32_t access);
bool qemu_plugin_mem_is_store(uint32_t access);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t access, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);

/* Not of the interface, but of a QEMU that loads modules, whose functions all can be called: a CPU's number to the CPU, and
 * the end of its turn where all CPUs share a thread. */
struct CPUState;
__attribute__((weak)) struct CPUState *qemu_get_cpu(int number);
__attribute__((weak)) void cpu_exit(struct CPUState *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

#endif
