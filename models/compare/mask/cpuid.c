// Shows its process a processor whose newest vector instructions are AVX2, as SIGHTLINE_CPU=avx2 does for ours:
//
//     gcc -O2 -shared -fPIC -o mask.so cpuid.c && LD_PRELOAD=./mask.so PROGRAM
//
// Linux lets a process trap its own CPUID instructions (arch_prctl ARCH_SET_CPUID) if the processor can fault on them, which
// /proc/cpuinfo calls cpuid_fault. The handler executes the instruction and clears the bits of AVX-512, AVX-VNNI and AMX.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define SET_CPUID 0x1012 // of arch_prctl: 1 executes CPUID, 0 traps it
#define BIT(n) (1u << (n))

static void mask(unsigned leaf, unsigned sub, unsigned *a, unsigned *b, unsigned *c, unsigned *d) {
	if (leaf == 7 && sub == 0) {
		*b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31)); // F, DQ, IFMA, PF, ER, CD, BW, VL
		*c &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14));                                 // VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ
		*d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25)); // 4VNNIW, 4FMAPS, VP2INTERSECT, AMX and FP16
	}
	if (leaf == 7 && sub == 1) {
		*a &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23));  // AVX-VNNI, AVX512_BF16, AMX-FP16, AVX-IFMA
		*d &= ~(BIT(4) | BIT(5) | BIT(10) | BIT(19)); // AVX-VNNI-INT8, AVX-NE-CONVERT, AVX-VNNI-INT16, AVX10
	}
}

static void trapped(int number, siginfo_t *info, void *context) {
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	const unsigned char *code = (const unsigned char *)r[REG_RIP];
	if (code[0] != 0x0f || code[1] != 0xa2) { // any other fault is the program's
		signal(SIGSEGV, SIG_DFL);
		return;
	}
	unsigned leaf = r[REG_RAX], sub = r[REG_RCX], a, b, c, d;
	syscall(SYS_arch_prctl, SET_CPUID, 1);
	__cpuid_count(leaf, sub, a, b, c, d);
	syscall(SYS_arch_prctl, SET_CPUID, 0);
	mask(leaf, sub, &a, &b, &c, &d);
	r[REG_RAX] = a, r[REG_RBX] = b, r[REG_RCX] = c, r[REG_RDX] = d;
	r[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_sigaction = trapped;
	action.sa_flags = SA_SIGINFO | SA_NODEFER;
	sigaction(SIGSEGV, &action, 0);
	syscall(SYS_arch_prctl, SET_CPUID, 0);
}
