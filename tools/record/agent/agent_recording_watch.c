// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * agent_recording_watch.c - looks for threads and processes that came or went without the agent's
 * knowledge, and has agents look for threads that did not register.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/proc/maps.h"
#include "tools/proc/tasks.h"
#include "tools/record/agent/agent_recording_private.h"
#include "tools/record/agent/ledger.h"

static unsigned int count_slots(struct agent_recording *d, uint32_t instance, int *signo, int *tid)
{
	uint32_t high = agent_recording_slots_used(d);
	unsigned int nr = 0;

	for (uint32_t i = 0; i < high; i++) {
		struct rec_slot *slot = &d->slots[i];
		int state = REC_OWNER_STATE(atomic_load(&slot->owner));

		if (slot->instance != instance || (state != REC_TAKEN && state != REC_ACTIVE))
			continue;
		nr++;
		/* If the first thread lives, a signal disturbs it least. */
		if (state == REC_ACTIVE && slot->signo && (!*tid || (int)slot->tid < *tid)) {
			*signo = slot->signo;
			*tid = slot->tid;
		}
	}
	return nr;
}

static unsigned int count_threads(int pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &st) || st.st_nlink < 3 ? 0 : st.st_nlink - 2;
}

/*
 * Returns whether the agent entered this process. The process ID is only what the shared memory
 * says, and this command may be allowed to send signals to other processes too.
 */
static bool maps_our_memory(const struct agent_recording *d, int pid)
{
	static const char memory[] = "/memfd:" AGENT_RECORDING_MEMORY;
	struct mapping m;
	struct maps maps;
	bool found = false;
	struct stat st;

	if (fstat(d->memory.fd, &st) || maps_open(pid, "maps", &maps))
		return false;
	while (!found && maps_next(&maps, &m))
		found = m.inode == st.st_ino && !strncmp(m.path, memory, sizeof(memory) - 1);
	maps_close(&maps);
	return found;
}

/* Asks thread @tid of the process, by a signal, to look for threads that did not register. */
static void ask_scan(struct agent_recording *d, struct process_image *image, int signo, int tid)
{
	siginfo_t si = { .si_signo = signo, .si_code = SI_QUEUE };

	si.si_pid = getpid();
	si.si_uid = getuid();
	si.si_value.sival_ptr = (void *)(uintptr_t)d->header->cookie;
	syscall(SYS_rt_tgsigqueueinfo, image->pid, tid, signo, &si);
	image->asked++;
	image->missing = 0;
}

static void watch_threads(struct agent_recording *d, struct process_image *image)
{
	unsigned int threads = count_threads(image->pid);
	int signo = 0, tid = 0;

	/*
	 * At least two looks must agree, as threads come and go. With each request more looks are
	 * needed for the next one.
	 */
	if (!threads || threads <= count_slots(d, image->instance, &signo, &tid)) {
		image->missing = 0;
		return;
	}
	if (++image->missing < 2u << (image->asked < 8 ? image->asked : 8))
		return;
	if (signo >= SIGRTMIN && signo <= SIGRTMAX && tid > 0 && maps_our_memory(d, image->pid))
		ask_scan(d, image, signo, tid);
}

void agent_recording_watch(struct agent_recording *d)
{
	agent_recording_free_dead(d);
	agent_recording_see_gone(d);
	if (d->ledger)
		ledger_watch(d->ledger);
	for (struct process_image *image = d->images; image; image = image->hh.next) {
		if (image->dead)
			continue;
		if (process_gone(image->pid))
			image->dead = true;
		else
			watch_threads(d, image);
	}
}
