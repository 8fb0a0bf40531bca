// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lend.c - a process of the broker that answers one connection.
 *
 * The kernel decides whether a user may have events of a thread, by the rules of ptrace(2), and it
 * does so twice. First, the process that asks has opened /proc/TID/mem, for which the kernel
 * requires the right to attach to the thread. That check applies to that process, with everything
 * that confines it (Yama, Landlock, AppArmor, SELinux, namespaces). Second, this process, which has
 * the user's identity and no other rights, looks at the thread's namespaces. For that the kernel
 * requires that the thread has the same user and group and no rights that the user lacks, and that
 * its program may be dumped.
 *
 * The thread is checked before its event is opened and once more afterwards, by a descriptor of its
 * folder in /proc. As long as that folder can be read, the thread has its number: no other process
 * can have got the number meanwhile. If the thread executes a set-user-ID program, the kernel ends
 * events that were opened before that; an event that was opened after that is closed here, and it
 * has not taken effect yet, because its owner enables it.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/broker/held_events.h"
#include "tools/broker/lend.h"
#include "tools/perf/borrow_protocol.h"
#include "tools/perf/borrow_reply.h"
#include "tools/perf/rings.h"
#include "tools/seccomp.h"

#define CAP_PERFMON_NR 38
/* Kernels of Debian and Ubuntu require the second one if kernel.perf_event_paranoid is above 2. */
#define RIGHTS ((1ull << CAP_PERFMON_NR) | (1ull << CAP_SYS_ADMIN))

/*
 * None of these has an address of the kernel's, as callchains are taken without the kernel's part.
 */
#define SAMPLE_TYPES                                                                        \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | \
	 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

/* Descriptors of this process; it has no others except while it answers a request. */
enum { SOCKET = 3, SET, COUNTS, PEER, PROGRAM, ASKED };

/**
 * struct lender - what is known while one connection is answered
 * @opts: what a user may have.
 * @held: number of the user's events; it is counted again if it seems to be too high.
 * @namespaces: this process's namespaces of users and of process IDs.
 */
struct lender {
	const struct lend_opts *opts;
	struct held held;
	struct stat namespaces[2];
};

static const char *const namespaces[2] = { "ns/user", "ns/pid" };

/* ---- The identity of this process ---- */

static int set_rights(uint64_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = effective >> 32 * i,
			.permitted = RIGHTS >> 32 * i,
		};
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/*
 * Takes on the user's identity. Nobody else can read this process's memory: it is not dumpable, and
 * has rights that the user lacks.
 */
static int become(const struct ucred *peer)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_KEEPCAPS, 1) ||
	    setgroups(0, NULL) || setresgid(peer->gid, peer->gid, peer->gid) ||
	    setresuid(peer->uid, peer->uid, peer->uid) || prctl(PR_SET_DUMPABLE, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return set_rights(0);
}

/* Closes all descriptors but the standard ones and those that are to stay. */
static int close_others(bool walks)
{
	if (syscall(SYS_close_range, COUNTS, PEER, 0) ||
	    syscall(SYS_close_range, walks ? ASKED + 1 : PROGRAM, ~0u, 0))
		return -errno;
	return 0;
}

/*
 * Closes all descriptors but the standard ones, SOCKET, SET and COUNTS, and PROGRAM and ASKED if walks
 * are lent. COUNTS lists the set with the number SET.
 */
static int arrange(int socket, int set, const struct lend_opts *opts)
{
	const bool walks = opts->program;
	const int given[] = { socket, set, opts->program, opts->leases };
	const int to[] = { SOCKET, SET, PROGRAM, ASKED };
	int from[4], counts, err;

	/* These numbers do not collide with the final ones. */
	for (int i = 0; i < (walks ? 4 : 2); i++)
		from[i] = fcntl(given[i], F_DUPFD_CLOEXEC, 100);
	for (int i = 0; i < (walks ? 4 : 2); i++)
		if (from[i] < 0 || dup3(from[i], to[i], O_CLOEXEC) < 0)
			return -errno;
	err = close_others(walks);
	if (err)
		return err;
	counts = held_open(SET);
	return counts == COUNTS ? 0 : counts < 0 ? counts : -EBADF;
}

/* ---- The process that asks ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/*
 * Returns 0 if the process of a folder of /proc is in this process's namespaces, otherwise a
 * negative errno.
 */
static int check_namespaces(const struct lender *l, int folder)
{
	struct stat st;

	for (int i = 0; i < 2; i++) {
		if (fstatat(folder, namespaces[i], &st, 0))
			return errno == ENOENT || errno == ESRCH ? -ESRCH : -EPERM;
		if (!same_file(&st, &l->namespaces[i]))
			return -EPERM;
	}
	return 0;
}

static int open_folder(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : -errno;
}

/*
 * Returns whether the process that connected still exists, so that PEER is its folder; true if the
 * kernel cannot tell.
 */
static bool is_there(int socket)
{
	int fd;
	socklen_t size = sizeof(fd);
	bool ret;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size))
		return errno == ENOPROTOOPT;
	ret = !syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0) || errno == EPERM;
	close(fd);
	return ret;
}

/*
 * Opens the folder of the process that asks, as PEER; that process stays the same for the whole
 * connection. Returns 0 or a negative errno.
 */
static int meet(struct lender *l, const struct ucred *peer)
{
	int folder, ret;

	for (int i = 0; i < 2; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/%s", namespaces[i]);
		if (stat(path, &l->namespaces[i]))
			return -errno;
	}
	folder = open_folder(peer->pid);
	if (folder != PEER)
		return folder < 0 ? folder : -EBADF;
	ret = check_namespaces(l, PEER);
	return !ret && !is_there(SOCKET) ? -ESRCH : ret;
}

/*
 * Installs a filter of system calls before requests are read. Whoever took control of this process
 * could look at files and open events, as it does itself, but could not write to a file, start a
 * program, send a signal or trace a process. On a kernel without filters there is none.
 */
static int filter_calls(void)
{
	static const struct sock_filter code[] = {
		FILTER_BEGIN,
		FILTER_CALL(recvmsg),
		FILTER_CALL(sendmsg),
		FILTER_CALL_WITHOUT(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC),
		FILTER_CALL(newfstatat),
		FILTER_CALL(fstat),
		FILTER_CALL(statx),
		FILTER_CALL(getuid),
		FILTER_CALL(capset),
		FILTER_CALL_WITHOUT(perf_event_open, 4, (uint32_t)~PERF_FLAG_FD_CLOEXEC),
		FILTER_CALL_WITH(ioctl, 1, PERF_EVENT_IOC_SET_BPF),
		FILTER_CALL(epoll_ctl),
		FILTER_CALL(read),
		FILTER_CALL(lseek),
		FILTER_CALL(dup),
		FILTER_CALL_WITHOUT(fcntl, 1, (uint32_t) ~(F_GETFL | F_GETFD)),
		FILTER_CALL(close),
		FILTER_CALL(brk),
		FILTER_CALL_WITHOUT(mmap, 2, PROT_EXEC),
		FILTER_CALL_WITHOUT(mprotect, 2, PROT_EXEC),
		FILTER_CALL(munmap),
		FILTER_CALL(rt_sigreturn),
		FILTER_CALL(exit),
		FILTER_CALL(exit_group),
		FILTER_DENY,
	};
	int err = filter_install(code, sizeof(code) / sizeof(code[0]));

	return err == -EINVAL ? 0 : err;
}

/* ---- Permission ---- */

/*
 * Returns 0 if descriptor @proof of the process that asks is an open /proc/TID/mem, otherwise a
 * negative errno. It looks at the descriptor where it is, without a request to a file system that
 * may be the user's own.
 */
static int check_proof(const struct broker_request *r, const struct stat *mem)
{
	struct statx st;
	char path[32];

	snprintf(path, sizeof(path), "fd/%d", r->proof);
	if (statx(PEER, path, AT_STATX_DONT_SYNC, STATX_INO, &st))
		return -EPERM;
	return makedev(st.stx_dev_major, st.stx_dev_minor) == mem->st_dev &&
			       st.stx_ino == mem->st_ino ?
		       0 :
		       -EPERM;
}

/*
 * Returns whether suid_dumpable is 1, or cannot be read. With 1, set-user-ID programs may be
 * dumped, and the kernel does not end their events.
 */
static bool setuid_is_dumped(void)
{
	int fd = open("/proc/sys/fs/suid_dumpable", O_RDONLY | O_CLOEXEC);
	char value = 0;
	bool known = fd >= 0 && read(fd, &value, 1) == 1;

	if (fd >= 0)
		close(fd);
	return !known || value == '1';
}

/*
 * Returns 0 if the process that asks may trace the thread whose folder this is, otherwise a
 * negative errno.
 */
static int check_thread(const struct lender *l, const struct broker_request *r, int folder)
{
	struct stat mem;

	if (fstatat(folder, "mem", &mem, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT || errno == ESRCH ? -ESRCH : -EPERM;
	/* For a program that may not be dumped this file belongs to root. */
	if (mem.st_uid != getuid())
		return -EPERM;
	if (check_proof(r, &mem) || setuid_is_dumped())
		return -EPERM;
	return check_namespaces(l, folder);
}

/* Checks a request for an event. */
static int check_event(const struct broker_request *r)
{
	if (r->flags & ~BROKER_EVENT_FLAGS)
		return -EINVAL;
	if (r->tid < 1 || r->proof < 0 || r->cpu >= BROKER_MAX_CPUS || !r->freq ||
	    r->freq > BROKER_MAX_FREQ || r->copy > BROKER_MAX_COPY || r->copy % 8 ||
	    r->max_stack > UINT16_MAX)
		return -EINVAL;
	return 0;
}

/* Checks a request for a lease or for its output. */
static int check_lease(const struct broker_request *r)
{
	const bool output = r->kind == BROKER_OUTPUT;

	if (r->tid || r->proof || r->freq || r->copy)
		return -EINVAL;
	if (output)
		return r->flags || r->max_stack || r->cpu >= BROKER_MAX_CPUS || !r->lease ?
			       -EINVAL :
			       0;
	return r->flags & ~BROKER_LEASE_FLAGS || r->cpu || r->lease || !r->max_stack ||
			       r->max_stack > UINT16_MAX ?
		       -EINVAL :
		       0;
}

/* Checks a request about a process with an interpreter. What it says of it is the broker's to check. */
static int check_process(const struct broker_request *r)
{
	return r->flags || r->tid < 1 || r->proof || r->cpu || r->freq || r->copy || r->max_stack ||
			       !r->lease ?
		       -EINVAL :
		       0;
}

static bool is_about_lease(const struct broker_request *r)
{
	return r->kind == BROKER_LEASE || r->kind == BROKER_OUTPUT || r->kind == BROKER_PROCESS;
}

static int check_request(const struct broker_request *r)
{
	if (r->version != BROKER_VERSION)
		return -EPROTO;
	if (r->kind >= BROKER_KINDS)
		return -EINVAL;
	if (r->kind == BROKER_PROCESS)
		return check_process(r);
	return is_about_lease(r) ? check_lease(r) : check_event(r);
}

/* ---- The event ---- */

static bool is_user_only(const struct lender *l, const struct broker_request *r)
{
	return r->kind != BROKER_SWITCHES && (!l->opts->kernel_time || r->flags & BROKER_NO_KERNEL);
}

/*
 * Fills @attr as the recorder expects it, and with nothing of the kernel's, whatever the request
 * asks for.
 */
static void make_attr(const struct lender *l, const struct broker_request *r,
		      struct perf_event_attr *attr)
{
	static const char *const names[] = {
		[BROKER_CPU_CLOCK] = "cpu-clock",
		[BROKER_TASK_CLOCK] = "task-clock",
		[BROKER_SWITCHES] = "cpu-clock",
	};
	const bool switches = r->kind == BROKER_SWITCHES;
	struct perf_opts opts = {
		.main = switches && r->flags & BROKER_TELLS ? NULL :
							      perf_event_find(names[r->kind]),
		.freq = r->freq,
		.off = switches,
		.max_stack = r->max_stack,
		.copy = r->copy,
		.cgroup = -1,
		.nr_pids = 1,
		.on_exec = r->flags & BROKER_ON_EXEC,
	};

	perf_rings_attr(&opts, switches ? PERF_OFF : PERF_MAIN, attr);
	attr->sample_type &= SAMPLE_TYPES;
	attr->exclude_kernel = is_user_only(l, r);
	attr->exclude_callchain_kernel = 1;
	attr->exclude_hv = 1;
	attr->disabled = 1;
	attr->config1 = r->lease;
}

/*
 * Opens the event. Only here the right to do so is in effect. Kernels before 6.0 cannot count lost
 * records.
 */
static int open_event(struct perf_event_attr *attr, const struct broker_request *r)
{
	int fd, err = set_rights(RIGHTS);

	if (err)
		return err;
	fd = syscall(SYS_perf_event_open, attr, r->tid, (int)r->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == EINVAL && attr->read_format) {
		attr->read_format = 0;
		fd = syscall(SYS_perf_event_open, attr, r->tid, (int)r->cpu, -1,
			     PERF_FLAG_FD_CLOEXEC);
	}
	err = fd < 0 ? -errno : 0;
	if (set_rights(0))
		_exit(1);
	return err ? err : fd;
}

/*
 * Returns 0 if the user may have one more event on @cpu, otherwise a negative errno. No other
 * process adds or counts events of this user meanwhile: each user has only one at a time.
 */
static int may_have_more(struct lender *l, uint32_t cpu)
{
	int err;

	if (l->held.of_cpu[cpu] < l->opts->events)
		return 0;
	err = held_count(COUNTS, &l->held);
	if (err)
		return err;
	return l->held.of_cpu[cpu] < l->opts->events ? 0 : -EDQUOT;
}

static int keep_count(struct lender *l, int event, uint32_t cpu)
{
	int err = held_add(SET, event, cpu);

	l->held.of_cpu[cpu] += !err;
	return err;
}

/*
 * Opens an event and checks the thread before and after that. Returns its descriptor or a negative
 * errno.
 */
static int open_checked(struct lender *l, const struct broker_request *r, int folder)
{
	struct perf_event_attr attr;
	int err = check_thread(l, r, folder), fd;

	if (err)
		return err;
	make_attr(l, r, &attr);
	fd = open_event(&attr, r);
	if (fd < 0)
		return fd;
	err = check_thread(l, r, folder);
	if (!err && r->lease && ioctl(fd, PERF_EVENT_IOC_SET_BPF, PROGRAM))
		err = -errno;
	if (!err)
		err = keep_count(l, fd, r->cpu);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Has the broker answer a request of @size bytes about a lease. Returns what answer() does. */
static int ask_broker(union broker_packet *r, size_t size, struct broker_reply *ret)
{
	struct iovec vec = { .iov_base = r, .iov_len = size };
	const struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };
	struct broker_reply reply;
	int fd;

	if (sendmsg(ASKED, &msg, MSG_NOSIGNAL) != (ssize_t)size)
		return -EPIPE;
	fd = broker_receive(ASKED, &reply);
	if (fd >= 0) {
		ret->lease = reply.lease;
		ret->flags |= reply.flags & BROKER_DONE;
	}
	return fd;
}

/* Answers a request for an event. Returns its descriptor or a negative errno. */
static int answer_event(struct lender *l, const struct broker_request *r)
{
	int err = may_have_more(l, r->cpu), folder;

	if (err)
		return err;
	folder = open_folder(r->tid);
	if (folder < 0)
		return folder;
	err = open_checked(l, r, folder);
	close(folder);
	return err;
}

/*
 * Answers a request of @size bytes. Returns a descriptor or a negative errno, or sets BROKER_DONE in
 * @ret, which also receives the number of a new lease.
 */
static int answer(struct lender *l, union broker_packet *packet, size_t size,
		  struct broker_reply *ret)
{
	const struct broker_request *r = &packet->request;
	const int err = check_request(r);

	if (err)
		return err;
	if ((is_about_lease(r) || r->lease) && !l->opts->program)
		return -EOPNOTSUPP;
	return is_about_lease(r) ? ask_broker(packet, size, ret) : answer_event(l, r);
}

/* ---- The connection ---- */

/*
 * Receives a request. Descriptors that were sent with it are not taken. Returns its bytes; 0: there are
 * no more requests, or this is none.
 */
static size_t receive(union broker_packet *ret)
{
	struct iovec vec = { .iov_base = ret, .iov_len = sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &vec, .msg_iovlen = 1 };
	const ssize_t size = recvmsg(SOCKET, &msg, MSG_CMSG_CLOEXEC);

	return broker_is_whole(ret, size) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? size : 0;
}

/* Answers one request after the other. */
static void answer_all(struct lender *l)
{
	union broker_packet packet;
	bool sent = true;
	size_t size;

	while (sent && (size = receive(&packet))) {
		struct broker_reply reply = { .version = BROKER_VERSION };
		int ret = answer(l, &packet, size, &reply);

		reply.flags |= is_user_only(l, &packet.request) ? BROKER_USER_ONLY : 0;
		sent = broker_answer(SOCKET, &reply, ret);
	}
}

_Noreturn void lend(int socket, const struct ucred *peer, int set, const struct lend_opts *opts)
{
	static struct lender l;
	int ret = arrange(socket, set, opts);

	alarm(LEND_SECONDS);
	l.opts = opts;
	if (!ret)
		ret = become(peer);
	if (!ret)
		ret = meet(&l, peer);
	if (!ret)
		ret = held_count(COUNTS, &l.held);
	if (!ret)
		ret = filter_calls();
	if (ret)
		lend_refuse(SOCKET, -ret);
	answer_all(&l);
	_exit(0);
}

_Noreturn void lend_refuse(int socket, int error)
{
	struct broker_reply reply = { .version = BROKER_VERSION };

	broker_answer(socket, &reply, -error);
	_exit(0);
}
