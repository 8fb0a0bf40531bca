// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kvm_test.c - tests callchains of a process that runs a virtual machine
 *
 *	kvm_test SHSTK
 *
 * SHSTK is the command, which compiles this program's table. shstk_perf.ko is loaded. In the
 * machine a loop runs forever and leaves the machine now and then by an access to a port. What is
 * sampled while the processor is in the machine is left to the kernel. Otherwise the program's
 * chains are as usual.
 */
#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "busy.h"
#include "kselftest.h"
#include "selftests/place.h"

#define OTHER "/sys/module/shstk_perf/chains/other_mode"
#define SAMPLES 200

PLACE(between);
PLACE(run_machine);

/* mov $0xffff, %cx; loop to itself; out %al, $0x10; jmp to the beginning */
static const unsigned char code[] = { 0xb9, 0xff, 0xff, 0xe2, 0xfe, 0xe6, 0x10, 0xeb, 0xf7 };

/**
 * struct machine - a virtual machine with one processor
 * @vcpu: descriptor of the processor.
 * @run: the kernel's data about the processor.
 */
struct machine {
	int vcpu;
	struct kvm_run *run;
};

static bool set_registers(int vcpu)
{
	struct kvm_regs regs = { .rflags = 2 };
	struct kvm_sregs sregs;

	if (ioctl(vcpu, KVM_GET_SREGS, &sregs))
		return false;
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	return !ioctl(vcpu, KVM_SET_SREGS, &sregs) && !ioctl(vcpu, KVM_SET_REGS, &regs);
}

static bool make_machine(int kvm, struct machine *m)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct kvm_userspace_memory_region region = {
		.memory_size = 4096,
		.userspace_addr = (uintptr_t)memory,
	};
	int vm = ioctl(kvm, KVM_CREATE_VM, 0);

	if (vm < 0 || memory == MAP_FAILED)
		return false;
	memcpy(memory, code, sizeof(code));
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		return false;
	m->vcpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	m->run = mmap(NULL, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), PROT_READ | PROT_WRITE,
		      MAP_SHARED, m->vcpu, 0);
	return m->vcpu >= 0 && m->run != MAP_FAILED && set_registers(m->vcpu);
}

static in_(between) void between(void)
{
	for (int i = 0; i < 100000; i++)
		asm volatile("" ::: "memory");
}

/* Runs the machine. Returns only if the machine does something unexpected. */
static in_(run_machine) int run_machine(const struct machine *m)
{
	for (;;) {
		if (ioctl(m->vcpu, KVM_RUN, 0) && errno != EINTR)
			return errno;
		if (m->run->exit_reason != KVM_EXIT_IO && m->run->exit_reason != KVM_EXIT_INTR)
			return 1000 + (int)m->run->exit_reason;
		between();
	}
}

/* Starts a process that runs the machine. It ends by itself only if the machine does not run. */
static pid_t start(int kvm)
{
	struct machine m;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!make_machine(kvm, &m)) {
		ksft_print_msg("no machine: %s\n", strerror(errno));
		fflush(NULL);
		_exit(1);
	}
	ksft_print_msg("the machine ended: %d\n", run_machine(&m));
	fflush(NULL);
	_exit(1);
}

/*
 * @outside: number of samples of between(). @whole: number of those whose caller is run_machine().
 */
struct seen {
	unsigned int outside, whole;
};

static void look(void *arg, const struct sample *s)
{
	struct seen *seen = arg;

	if (!s->nr || !is_in(between, s->ip[0]))
		return;
	seen->outside++;
	if (s->nr > 2 && is_in(run_machine, s->ip[1]))
		seen->whole++;
	else
		ksft_print_msg("not whole: %#lx in %#lx, %u entries\n", (unsigned long)s->ip[0],
			       s->nr > 1 ? (unsigned long)s->ip[1] : 0, s->nr);
}

int main(int argc, char **argv)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	struct seen seen = { 0 };
	struct sampler sampler;
	long other;
	pid_t pid;

	ksft_print_header();
	if (kvm < 0)
		ksft_exit_skip("/dev/kvm: %s\n", strerror(errno));
	if (argc < 2 || !busy_load_table(argv[1]))
		ksft_exit_fail_msg("kvm_test SHSTK: no table\n");
	ksft_set_plan(3);
	other = read_number(OTHER);
	pid = start(kvm);
	if (sampler_open(&sampler, pid, BUSY_PERIOD, false))
		ksft_exit_fail_msg("perf_event_open: %s\n", strerror(errno));
	for (int i = 0; i < BUSY_PATIENCE; i++) {
		sampler_drain(&sampler, look, &seen);
		if (seen.outside >= SAMPLES && read_number(OTHER) > other)
			break;
		usleep(1000);
	}
	sampler_close(&sampler);
	ksft_test_result(!waitpid(pid, NULL, WNOHANG), "a virtual machine runs\n");
	ksft_test_result(read_number(OTHER) > other,
			 "what hits it is left to the kernel: %ld samples\n",
			 read_number(OTHER) - other);
	ksft_test_result(seen.outside >= SAMPLES && seen.whole == seen.outside,
			 "between, its process's chains are whole: %u of %u\n", seen.whole,
			 seen.outside);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ksft_finished();
}
