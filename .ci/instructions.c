// A plugin of qemu-user that prints the instructions between every two calls of getppid. Debian has no package of qemu-plugin.h, so the
// declarations that it needs are here.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

struct qemu_plugin_tb;
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, void (*)(uint64_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int add, void *to, uint64_t n);
extern void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, void (*)(uint64_t, unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
int qemu_plugin_version = 1;

static uint64_t count, before;
static int calls;

static void translated(uint64_t id, struct qemu_plugin_tb *tb) {
	qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &count, qemu_plugin_tb_n_insns(tb));
}

static void called(uint64_t id, unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h) {
	if (number != 173) return; // getppid on arm64
	if (calls++ & 1) fprintf(stderr, "count %" PRIu64 "\n", count - before);
	before = count;
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_vcpu_syscall_cb(id, called);
	return 0;
}
