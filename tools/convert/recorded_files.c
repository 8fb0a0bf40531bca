// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * recorded_files.c - finds the files that processes of a perf.data file had mapped, on this machine
 * now or below a folder. See recorded_files.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>

#include "libshstk/file_rules.h"
#include "tools/convert/recorded_files.h"
#include "tools/proc/maps.h"
#include "tools/shstk.h"

/* Returns whether the file was recorded with the kernel that runs here, as far as it says. */
static bool is_this_kernel(const struct perfdata *pd)
{
	struct utsname here;

	return !uname(&here) && !strcmp(pd->release, here.release) &&
	       !strcmp(pd->machine, here.machine);
}

/*
 * Finds the vdso, which is in no file: that of this process is taken if it is the same. perf record
 * -z and -B note no build ids; then the vdso is trusted to be the same, as files are. Returns false
 * if there is none.
 */
static bool same_vdso(const struct perfdata *pd, const struct mappings_map *m, const void **image)
{
	struct build_id own;

	*image = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!*image)
		return false;
	if (!m->id.size)
		return is_this_kernel(pd) && maps_vdso_size() == m->end - m->start;
	build_id_of(*image, 4096, &own);
	return own.size == m->id.size && !memcmp(own.data, m->id.data, own.size);
}

/* Adds a mapping to the modules for unwinding. Returns 0 or a negative errno. */
static int add_code(void *arg, pid_t pid, struct shstk_space *space, const struct mappings_map *m)
{
	struct past *past = arg;
	struct image *file = NULL;
	const void *vdso;
	int err = -ENOENT;

	(void)pid;
	if (!strcmp(m->path, "[vdso]") && same_vdso(past->pd, m, &vdso))
		return shstk_space_add_image(space, vdso, m->end - m->start, m->start);
	if (mappings_is_file(m->path))
		file = image_get(&past->images, m->path, &m->id);
	if (!file)
		return err;
	err = image_add(space, file, m->start, m->end, m->offset);
	/*
	 * After a change of protection (arm64's BTI), the rest of a mapping of code may be no code.
	 */
	if (!err || (err == -ENOEXEC && !image_is_code(file, m->offset)))
		return err;
	if (!file->complained)
		complain("%s cannot be used: %s", file->found, strerror(-err));
	file->complained = true;
	return err;
}

/* Adds a mapping to those by which addresses are named. Returns 0 or a negative errno. */
static int add_names(void *arg, pid_t pid, struct shstk_symproc *proc, const struct mappings_map *m)
{
	struct past *past = arg;
	struct shstk_symmap_info info = {
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.path = m->path,
		.build_id = m->id.size ? m->id.data : NULL,
		.build_id_size = m->id.size,
	};
	struct image *file;
	const void *vdso;

	(void)pid;
	if (!strcmp(m->path, "[vdso]")) {
		if (same_vdso(past->pd, m, &vdso)) {
			info.image = vdso;
			info.image_size = m->end - m->start;
		}
	} else if (!mappings_is_file(m->path)) {
		info.path = strcmp(m->path, "[uprobes]") ? "" : m->path;
	} else {
		file = image_get(&past->images, m->path, &m->id);
		if (file)
			info.path = file->found;
	}
	return shstk_symproc_add(proc, &info);
}

/* Opens the file of a mapping. Returns a file descriptor or a negative errno. */
static int open_file(void *arg, pid_t pid, const struct mappings_map *m)
{
	struct past *past = arg;
	struct image *file = mappings_is_file(m->path) ? image_get(&past->images, m->path, &m->id) :
							 NULL;
	int fd = file ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;

	(void)pid;
	return !file ? -ENOENT : fd < 0 ? -errno : fd;
}

int past_init(struct past *past, const struct perfdata *pd, const char *sysroot)
{
	int err;

	*past = (struct past){
		.files = {
			.arch = pd->arch,
			.arg = past,
			.add = add_code,
			.name = add_names,
			.open = open_file,
		},
		.images.root = -1,
		.pd = pd,
	};
	err = images_init(&past->images, sysroot);
	/* Without memory, each process has its own. */
	if (!err)
		past->files.rules = file_rules_create();
	return err;
}

void past_deinit(struct past *past)
{
	images_deinit(&past->images);
	file_rules_destroy(past->files.rules);
}
