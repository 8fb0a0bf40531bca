// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * needed.c - which libraries a program loads, found as ld.so finds them, and
 * what their property notes say.
 *
 * The search order is that of ld.so(8): DT_RPATH of the object and of those
 * that loaded it (if the object has no DT_RUNPATH), LD_LIBRARY_PATH,
 * DT_RUNPATH, /etc/ld.so.cache, default folders. Every folder is looked at
 * with its glibc-hwcaps subfolders first. All opens are confined to the root
 * by openat2(RESOLVE_IN_ROOT).
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/needed.h"
#include "tools/shstk.h"

#ifndef EM_RISCV
#define EM_RISCV 243
#endif

#define PROPERTY_X86_FEATURE_1_AND	0xc0000002u
#define PROPERTY_X86_SHSTK		(1u << 1)
#define PROPERTY_ARM64_FEATURE_1_AND	0xc0000000u
#define PROPERTY_ARM64_GCS		(1u << 2)
#define PROPERTY_RISCV_FEATURE_1_AND	0xc0000000u
#define PROPERTY_RISCV_CFI_SS		(1u << 1)

enum limit {
	MAX_OBJECTS = 4096,
	MAX_NEEDED = 4096,
	MAX_NOTE = 1 << 20,
	MAX_DYNAMIC = 1 << 20,
	MAX_STRINGS = 64 << 20,
	MAX_CACHE = 64 << 20,
	MAX_MAPS_LINES = 1 << 20,
	MAX_SCRIPTS = 4,
};

const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86";
	case EM_AARCH64:
		return "arm64";
	case EM_RISCV:
		return "riscv";
	default:
		return "other";
	}
}

unsigned int machine_own(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#elif defined(__riscv)
	return EM_RISCV;
#else
	return EM_NONE;
#endif
}

/* Appends to a NULL-terminated list of strings; takes @s over. */
static int list_add(char ***list, size_t *n, char *s)
{
	char **v;

	if (!s)
		return -ENOMEM;
	v = reallocarray(*list, *n + 2, sizeof(*v));
	if (!v) {
		free(s);
		return -ENOMEM;
	}
	v[(*n)++] = s;
	v[*n] = NULL;
	*list = v;
	return 0;
}

static void list_free(char **list)
{
	for (char **s = list; s && *s; s++)
		free(*s);
	free(list);
}

static void object_deinit(struct object *o)
{
	free(o->path);
	free(o->name);
	free(o->interp);
	free(o->soname);
	free(o->rpath);
	free(o->runpath);
	free(o->package);
	list_free(o->needed);
}

void objects_deinit(struct objects *set)
{
	for (size_t i = 0; i < set->n; i++)
		object_deinit(&set->v[i]);
	free(set->v);
	list_free(set->missing);
	free(set->script);
	free(set->root);
	memset(set, 0, sizeof(*set));
}

/* Opens @path inside @root; symbolic links can't leave it. */
static int open_in(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int dir, fd;

	if (!*root)
		return open(path, how.flags);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	close(dir);
	return fd;
}

/* Path of an open file as seen in @root. */
static char *path_of(int fd, const char *root)
{
	char link[64], buf[PATH_MAX], dir[PATH_MAX];
	size_t len;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, buf, sizeof(buf) - 1);
	if (n <= 0)
		return NULL;
	buf[n] = '\0';
	if (*root && realpath(root, dir)) {
		len = strlen(dir);
		if (!strncmp(buf, dir, len) && buf[len] == '/')
			return strdup(buf + len);
	}
	return strdup(buf);
}

/* A copy of the string at @off of the string table, or NULL. */
static char *string_at(const Elf_Data *strings, GElf_Xword off)
{
	size_t room;

	if (off >= strings->d_size)
		return NULL;
	room = strings->d_size - off;
	if (room > PATH_MAX)
		room = PATH_MAX;
	if (strnlen((const char *)strings->d_buf + off, room) == room)
		return NULL;
	return strdup((const char *)strings->d_buf + off);
}

static void set_string(char **to, char *s)
{
	free(*to);
	*to = s;
}

/* File offset of an address, by the program headers. */
static int offset_of(Elf *elf, size_t phnum, GElf_Addr addr, GElf_Off *ret,
		     GElf_Xword *room)
{
	GElf_Phdr ph;

	for (size_t i = 0; i < phnum; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (addr < ph.p_vaddr || addr - ph.p_vaddr >= ph.p_filesz)
			continue;
		*ret = ph.p_offset + (addr - ph.p_vaddr);
		*room = ph.p_filesz - (addr - ph.p_vaddr);
		return 0;
	}
	return -ENOEXEC;
}

static Elf_Data *strings_of(Elf *elf, size_t phnum, const Elf_Data *dyn,
			    size_t count)
{
	GElf_Addr addr = 0;
	GElf_Xword size = 0, room;
	GElf_Off off;
	GElf_Dyn d;

	for (size_t i = 0; i < count; i++) {
		if (!gelf_getdyn((Elf_Data *)dyn, (int)i, &d) ||
		    d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_STRTAB)
			addr = d.d_un.d_ptr;
		else if (d.d_tag == DT_STRSZ)
			size = d.d_un.d_val;
	}
	if (!addr || !size || offset_of(elf, phnum, addr, &off, &room))
		return NULL;
	if (size > room)
		size = room;
	if (size > MAX_STRINGS)
		size = MAX_STRINGS;
	return elf_getdata_rawchunk(elf, (int64_t)off, size, ELF_T_BYTE);
}

static int read_dynamic(Elf *elf, size_t phnum, const GElf_Phdr *ph,
			struct object *o)
{
	size_t size = ph->p_filesz < MAX_DYNAMIC ? ph->p_filesz : MAX_DYNAMIC;
	size_t entry = o->bits == 64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	size_t count = size / entry, needed = 0;
	Elf_Data *dyn, *strings;
	GElf_Dyn d;
	int err;

	dyn = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, count * entry,
				   ELF_T_DYN);
	if (!dyn)
		return -ENOEXEC;
	strings = strings_of(elf, phnum, dyn, count);
	if (!strings)
		return 0;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getdyn(dyn, (int)i, &d) || d.d_tag == DT_NULL)
			break;
		switch (d.d_tag) {
		case DT_NEEDED:
			if (needed >= MAX_NEEDED)
				return -E2BIG;
			err = list_add(&o->needed, &needed,
				       string_at(strings, d.d_un.d_val));
			if (err)
				return -ENOEXEC;
			break;
		case DT_SONAME:
			set_string(&o->soname, string_at(strings, d.d_un.d_val));
			break;
		case DT_RPATH:
			set_string(&o->rpath, string_at(strings, d.d_un.d_val));
			break;
		case DT_RUNPATH:
			set_string(&o->runpath,
				   string_at(strings, d.d_un.d_val));
			break;
		case DT_FLAGS_1:
			o->nodeflib = d.d_un.d_val & DF_1_NODEFLIB;
			o->pie = d.d_un.d_val & DF_1_PIE;
			break;
		}
	}
	return 0;
}

static uint32_t load32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static bool property_marks(const struct object *o, uint32_t type, uint32_t bits)
{
	switch (o->machine) {
	case EM_X86_64:
		return type == PROPERTY_X86_FEATURE_1_AND &&
		       bits & PROPERTY_X86_SHSTK;
	case EM_AARCH64:
		return type == PROPERTY_ARM64_FEATURE_1_AND &&
		       bits & PROPERTY_ARM64_GCS;
	case EM_RISCV:
		return type == PROPERTY_RISCV_FEATURE_1_AND &&
		       bits & PROPERTY_RISCV_CFI_SS;
	default:
		return false;
	}
}

/* The descriptor of one NT_GNU_PROPERTY_TYPE_0 note. */
static void read_properties(const unsigned char *p, size_t size,
			    struct object *o)
{
	size_t align = o->bits == 64 ? 8 : 4;

	while (size >= 8) {
		uint32_t type = load32(p), len = load32(p + 4);
		size_t step;

		if (len > size - 8)
			return;
		if (len == 4 && property_marks(o, type, load32(p + 8)))
			o->marked = true;
		step = 8 + ((len + align - 1) & ~(align - 1));
		if (step > size)
			return;
		p += step;
		size -= step;
	}
}

static void read_notes(Elf *elf, const GElf_Phdr *ph, struct object *o)
{
	size_t size = ph->p_filesz < MAX_NOTE ? ph->p_filesz : MAX_NOTE;
	size_t name, desc, next, off = 0;
	Elf_Data *data;
	GElf_Nhdr note;

	data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, size,
				    ph->p_align == 8 ? ELF_T_NHDR8 :
						       ELF_T_NHDR);
	if (!data)
		return;
	while ((next = gelf_getnote(data, off, &note, &name, &desc)) > 0) {
		const char *base = data->d_buf;

		if (note.n_type == NT_GNU_PROPERTY_TYPE_0 &&
		    note.n_namesz == 4 && !memcmp(base + name, "GNU", 4))
			read_properties((const unsigned char *)base + desc,
					note.n_descsz, o);
		off = next;
	}
}

static char *read_interp(Elf *elf, const GElf_Phdr *ph)
{
	Elf_Data *data;

	if (ph->p_filesz < 2 || ph->p_filesz > PATH_MAX)
		return NULL;
	data = elf_getdata_rawchunk(elf, (int64_t)ph->p_offset, ph->p_filesz,
				    ELF_T_BYTE);
	return data ? string_at(data, 0) : NULL;
}

static int read_elf(Elf *elf, struct object *o)
{
	GElf_Ehdr eh;
	GElf_Phdr ph;
	size_t phnum;
	int err;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &eh) ||
	    eh.e_ident[EI_DATA] != ELFDATA2LSB || elf_getphdrnum(elf, &phnum))
		return -ENOEXEC;
	o->machine = eh.e_machine;
	o->type = eh.e_type;
	o->bits = eh.e_ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
	if (o->type != ET_EXEC && o->type != ET_DYN)
		return -ENOEXEC;
	for (size_t i = 0; i < phnum; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			return -ENOEXEC;
		switch (ph.p_type) {
		case PT_DYNAMIC:
			err = read_dynamic(elf, phnum, &ph, o);
			if (err)
				return err;
			break;
		case PT_INTERP:
			set_string(&o->interp, read_interp(elf, &ph));
			break;
		case PT_NOTE:
			read_notes(elf, &ph, o);
			break;
		}
	}
	return 0;
}

/*
 * What makes the kernel set AT_SECURE if this process executes the file. @capable: it
 * has capabilities.
 */
static bool gains_here(int fd, const struct stat *st, bool capable)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct statvfs fs;

	if (!prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) && !fstatvfs(fd, &fs) &&
	    !(fs.f_flag & ST_NOSUID)) {
		if (st->st_mode & S_ISUID)
			uid = st->st_uid;
		if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP)
			gid = st->st_gid;
		if (getuid() && capable)
			return true;
	}
	return uid != getuid() || gid != getgid();
}

static int read_object(int fd, const char *root, struct object *o)
{
	struct stat st;
	bool capable;
	Elf *elf;
	int err;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -ENOEXEC;
	capable = fgetxattr(fd, "security.capability", NULL, 0) > 0;
	o->privileged = st.st_mode & (S_ISUID | S_ISGID) || capable;
	o->gains = gains_here(fd, &st, capable);
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOSYS;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -ENOEXEC;
	err = read_elf(elf, o);
	elf_end(elf);
	if (err)
		return err;
	o->path = path_of(fd, root);
	return o->path ? 0 : -ENOMEM;
}

static struct object *set_push(struct objects *set)
{
	struct object *v;

	if (set->n >= MAX_OBJECTS)
		return NULL;
	if (!(set->n & (set->n - 1))) {
		v = reallocarray(set->v, set->n ? set->n * 2 : 1, sizeof(*v));
		if (!v)
			return NULL;
		set->v = v;
	}
	memset(&set->v[set->n], 0, sizeof(*v));
	return &set->v[set->n];
}

/*
 * Tries one file. Return: 1 if it is (now) in the set, 0 if it is not there or
 * is for another machine, or a negative errno.
 */
static int try_file(struct objects *set, const char *path, const char *name,
		    size_t parent)
{
	struct object *o;
	int fd, err;

	fd = open_in(set->root, path);
	if (fd < 0)
		return 0;
	o = set_push(set);
	if (!o) {
		close(fd);
		return -ENOMEM;
	}
	err = read_object(fd, set->root, o);
	close(fd);
	if (!err && set->n && (o->machine != set->v[0].machine ||
			       o->bits != set->v[0].bits))
		err = -ENOEXEC;
	for (size_t i = 0; !err && i < set->n; i++)
		if (!strcmp(set->v[i].path, o->path)) {
			object_deinit(o);
			return 1;
		}
	if (!err) {
		o->name = strdup(name);
		err = o->name ? 0 : -ENOMEM;
	}
	if (err) {
		object_deinit(o);
		return err == -ENOMEM ? err : 0;
	}
	o->parent = parent;
	set->n++;
	return 1;
}

/* glibc-hwcaps subfolders this machine uses, best first. */
static const char *const *hwcaps(unsigned int machine)
{
	static const char *const none[] = { NULL };
#ifdef __x86_64__
	static const char *const levels[] = { "x86-64-v4", "x86-64-v3",
					      "x86-64-v2", NULL };

	if (machine != EM_X86_64)
		return none;
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
	    __builtin_cpu_supports("fma"))
		return __builtin_cpu_supports("avx512vl") &&
			       __builtin_cpu_supports("avx512bw") &&
			       __builtin_cpu_supports("avx512dq") ?
			       levels : levels + 1;
	if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
		return levels + 2;
	return none;
#else
	(void)machine;
	return none;
#endif
}

static int try_folder(struct objects *set, const char *dir, size_t len,
		      const char *name, size_t parent)
{
	char path[PATH_MAX];
	int ret;

	if (!len)
		return 0;
	for (const char *const *cap = hwcaps(set->v[0].machine); *cap; cap++) {
		if (snprintf(path, sizeof(path), "%.*s/glibc-hwcaps/%s/%s",
			     (int)len, dir, *cap, name) >= (int)sizeof(path))
			return 0;
		ret = try_file(set, path, name, parent);
		if (ret)
			return ret;
	}
	if (snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name) >=
	    (int)sizeof(path))
		return 0;
	return try_file(set, path, name, parent);
}

/* What $LIB and $PLATFORM stand for in Debian's ld.so. */
static const char *lib_word(unsigned int machine)
{
	switch (machine) {
	case EM_X86_64:
		return "lib/x86_64-linux-gnu";
	case EM_AARCH64:
		return "lib/aarch64-linux-gnu";
	case EM_RISCV:
		return "lib/riscv64-linux-gnu";
	default:
		return "lib";
	}
}

static const char *platform_word(unsigned int machine)
{
	return machine == EM_X86_64 ? "x86_64" :
	       machine == EM_AARCH64 ? "aarch64" : "riscv64";
}

static size_t take_word(const char *s, const char *word)
{
	size_t n = strlen(word);

	if (s[0] != '$')
		return 0;
	if (s[1] == '{' && !strncmp(s + 2, word, n) && s[2 + n] == '}')
		return n + 3;
	if (!strncmp(s + 1, word, n) && s[1 + n] != '_' &&
	    !isalnum((unsigned char)s[1 + n]))
		return n + 1;
	return 0;
}

/* Expands $ORIGIN, $LIB and $PLATFORM. Return: length, or 0 if too long. */
static size_t expand(const struct object *o, const char *in, size_t len,
		     char *out, size_t room)
{
	size_t used = 0, skip, n;

	while (len && *in) {
		const char *word = in;

		n = 1;
		if ((skip = take_word(in, "ORIGIN"))) {
			word = o->path;
			n = (size_t)(strrchr(o->path, '/') - o->path);
		} else if ((skip = take_word(in, "LIB"))) {
			word = lib_word(o->machine);
			n = strlen(word);
		} else if ((skip = take_word(in, "PLATFORM"))) {
			word = platform_word(o->machine);
			n = strlen(word);
		} else {
			skip = 1;
		}
		if (skip > len || used + n >= room)
			return 0;
		memcpy(out + used, word, n);
		used += n;
		in += skip;
		len -= skip;
	}
	out[used] = '\0';
	return used;
}

/* A colon-separated list; @origin gives $ORIGIN its meaning. */
static int try_list(struct objects *set, const char *list, size_t origin,
		    const char *name, size_t parent)
{
	char dir[PATH_MAX];
	int ret;

	if (!list)
		return 0;
	while (*list) {
		size_t len = strcspn(list, ":;");
		size_t n = expand(&set->v[origin], list, len, dir, sizeof(dir));

		ret = try_folder(set, dir, n, name, parent);
		if (ret)
			return ret;
		list += len;
		list += *list != '\0';
	}
	return 0;
}

/* DT_RPATH of the object, of the one that loaded it, and so on. */
static int try_rpaths(struct objects *set, const char *name, size_t parent)
{
	size_t i = parent;
	int ret;

	if (set->v[parent].runpath)
		return 0;
	for (;;) {
		if (!set->v[i].runpath) {
			ret = try_list(set, set->v[i].rpath, i, name, parent);
			if (ret)
				return ret;
		}
		if (set->v[i].parent == i)
			break;
		i = set->v[i].parent;
	}
	if (i != 0 && !set->v[0].runpath)
		return try_list(set, set->v[0].rpath, 0, name, parent);
	return 0;
}

struct cache_header {
	char magic[20];
	uint32_t nlibs;
	uint32_t len_strings;
	uint32_t unused[5];
};

struct cache_entry {
	int32_t flags;
	uint32_t key;
	uint32_t value;
	uint32_t osversion;
	uint64_t hwcap;
};

static int32_t cache_flags(const struct object *o)
{
	switch (o->machine) {
	case EM_X86_64:
		return o->bits == 64 ? 0x0303 : 0x0803;
	case EM_386:
		return 0x0003;
	case EM_AARCH64:
		return 0x0a03;
	case EM_RISCV:
		return 0x1003;
	default:
		return -1;
	}
}

/* The whole cache, read once per root. */
static const char *cache_bytes(const char *root, size_t *size)
{
	static char *bytes;
	static char *of;
	static size_t len;
	struct stat st;
	ssize_t n;
	int fd;

	if (of && !strcmp(of, root)) {
		*size = len;
		return bytes;
	}
	free(of);
	free(bytes);
	bytes = NULL;
	len = 0;
	of = strdup(root);
	fd = open_in(root, "/etc/ld.so.cache");
	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0 &&
	    st.st_size <= MAX_CACHE) {
		bytes = malloc((size_t)st.st_size + 1);
		n = bytes ? read(fd, bytes, (size_t)st.st_size) : 0;
		len = n > 0 ? (size_t)n : 0;
		if (bytes)
			bytes[len] = '\0';
	}
	if (fd >= 0)
		close(fd);
	*size = len;
	return bytes;
}

static int try_cache(struct objects *set, const char *name, size_t parent)
{
	static const char magic[] = "glibc-ld.so.cache1.1";
	int32_t flags = cache_flags(&set->v[0]);
	struct cache_header head;
	struct cache_entry entry;
	const char *bytes, *base;
	size_t size, count;
	int ret;

	bytes = cache_bytes(set->root, &size);
	if (!bytes || size < sizeof(head))
		return 0;
	base = memcmp(bytes, magic, 20) ? memmem(bytes, size, magic, 20) : bytes;
	if (!base)
		return 0;
	size -= (size_t)(base - bytes);
	if (size < sizeof(head))
		return 0;
	memcpy(&head, base, sizeof(head));
	count = (size - sizeof(head)) / sizeof(entry);
	if (head.nlibs < count)
		count = head.nlibs;
	for (size_t i = 0; i < count; i++) {
		memcpy(&entry, base + sizeof(head) + i * sizeof(entry),
		       sizeof(entry));
		/* Entries of glibc-hwcaps subfolders: looked up as folders. */
		if (entry.flags != flags || entry.hwcap ||
		    entry.key >= size || entry.value >= size ||
		    strcmp(base + entry.key, name))
			continue;
		ret = try_folder(set, base + entry.value,
				 (size_t)(strrchr(base + entry.value, '/') ?
					  strrchr(base + entry.value, '/') -
						  (base + entry.value) : 0),
				 name, parent);
		if (!ret)
			ret = try_file(set, base + entry.value, name, parent);
		if (ret)
			return ret;
	}
	return 0;
}

static int try_defaults(struct objects *set, const char *name, size_t parent)
{
	const char *lib = lib_word(set->v[0].machine);
	char dir[PATH_MAX];
	const char *const dirs[] = { "/%s", "/usr/%s", "/lib64", "/usr/lib64",
				     "/lib", "/usr/lib" };
	int ret;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		if (i < 2)
			snprintf(dir, sizeof(dir), i ? "/usr/%s" : "/%s", lib);
		else
			snprintf(dir, sizeof(dir), "%s", dirs[i]);
		ret = try_folder(set, dir, strlen(dir), name, parent);
		if (ret)
			return ret;
	}
	return 0;
}

static bool is_musl(const struct objects *set)
{
	return set->v[0].interp && strstr(set->v[0].interp, "/ld-musl-");
}

/* The dynamic linker, which is there before any search; musl's is libc, too. */
static bool is_linker(const struct objects *set, const char *name)
{
	const char *interp = set->v[0].interp;

	if (!interp)
		return false;
	if (is_musl(set) && !strncmp(name, "libc.", 5))
		return true;
	return !strcmp(strrchr(interp, '/') ? strrchr(interp, '/') + 1 : interp,
		       name);
}

/* musl's loader has no cache and reads its folders from /etc/ld-musl-ARCH.path. */
static int try_musl(struct objects *set, const char *name, size_t parent)
{
	static const char fallback[] = "/lib:/usr/local/lib:/usr/lib";
	char path[PATH_MAX], list[8192];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/etc/ld-musl-%s.path",
		 platform_word(set->v[0].machine));
	fd = open_in(set->root, path);
	if (fd >= 0) {
		n = read(fd, list, sizeof(list) - 1);
		close(fd);
	}
	if (n < 0)
		return try_list(set, fallback, 0, name, parent);
	list[n] = '\0';
	for (char *p = list; *p; p++)
		if (*p == '\n')
			*p = ':';
	return try_list(set, list, 0, name, parent);
}

static int find_needed(struct objects *set, const char *name, size_t parent)
{
	const char *env = *set->root ? NULL : getenv("LD_LIBRARY_PATH");
	int ret;

	for (size_t i = 0; i < set->n; i++)
		if (!strcmp(set->v[i].name, name) ||
		    (set->v[i].soname && !strcmp(set->v[i].soname, name)))
			return 1;
	if (is_linker(set, name))
		return 1;	/* load_needed() adds it at the end */
	if (strchr(name, '/'))
		return try_file(set, name, name, parent);
	ret = try_rpaths(set, name, parent);
	if (!ret && !set->v[0].privileged)
		ret = try_list(set, env, 0, name, parent);
	if (!ret)
		ret = try_list(set, set->v[parent].runpath, parent, name,
			       parent);
	if (!ret && is_musl(set))
		return try_musl(set, name, parent);
	if (!ret && !set->v[parent].nodeflib)
		ret = try_cache(set, name, parent);
	if (!ret && !set->v[parent].nodeflib)
		ret = try_defaults(set, name, parent);
	return ret;
}

static int add_missing(struct objects *set, const char *name, size_t parent)
{
	char *s;

	if (asprintf(&s, "%s (needed by %s)", name, set->v[parent].path) < 0)
		return -ENOMEM;
	return list_add(&set->missing, &set->missing_n, s);
}

/* Breadth first, as ld.so does; the list grows while it is walked. */
static int load_needed(struct objects *set)
{
	int ret;

	for (size_t i = 0; i < set->n; i++) {
		for (size_t k = 0;
		     set->v[i].needed && set->v[i].needed[k]; k++) {
			ret = find_needed(set, set->v[i].needed[k], i);
			if (ret < 0)
				return ret;
			if (ret)
				continue;
			ret = add_missing(set, set->v[i].needed[k], i);
			if (ret)
				return ret;
		}
	}
	if (!set->v[0].interp)
		return 0;
	ret = try_file(set, set->v[0].interp, set->v[0].interp, 0);
	if (ret)
		return ret < 0 ? ret : 0;
	return add_missing(set, set->v[0].interp, 0);
}

/*
 * The interpreter named by "#!", or NULL. What env(1) would look for is put
 * into @word.
 */
static char *script_interpreter(int fd, char **word)
{
	char line[PATH_MAX], *start, *arg, *save;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	*word = NULL;
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[n] = '\0';
	line[strcspn(line, "\r\n")] = '\0';
	start = strtok_r(line + 2, " \t", &save);
	if (!start || *start != '/')
		return NULL;
	if (strcmp(strrchr(start, '/'), "/env"))
		return strdup(start);
	do {
		arg = strtok_r(NULL, " \t", &save);
	} while (arg && (*arg == '-' || strchr(arg, '=')));
	if (arg)
		*word = strdup(arg);
	return strdup(start);
}

static int load_program(struct objects *set, const char *path, int depth);

/* The program of a script's first line. */
static int load_interpreter(struct objects *set, const char *interp,
			    const char *word, int depth)
{
	char *found;
	int err;

	if (!word)
		return load_program(set, interp, depth);
	if (*set->root)
		err = asprintf(&found, "/usr/bin/%s", word) < 0 ? -ENOMEM : 0;
	else
		err = find_program(word, &found);
	if (err)
		return err;
	err = load_program(set, found, depth);
	free(found);
	return err;
}

static int load_program(struct objects *set, const char *path, int depth)
{
	char *interp, *word;
	struct object *o;
	int fd, err;

	fd = open_in(set->root, path);
	if (fd < 0)
		return -errno;
	interp = script_interpreter(fd, &word);
	if (interp) {
		if (!set->script)
			set->script = strdup(path);
		close(fd);
		err = depth < MAX_SCRIPTS ?
			      load_interpreter(set, interp, word, depth + 1) :
			      -ELOOP;
		free(interp);
		free(word);
		return err;
	}
	o = set_push(set);
	err = o ? read_object(fd, set->root, o) : -ENOMEM;
	close(fd);
	if (!o)
		return err;
	if (!err) {
		o->name = strdup(path);
		err = o->name ? 0 : -ENOMEM;
	}
	if (err)
		object_deinit(o);
	else
		set->n++;
	return err;
}

int objects_load(const char *path, const char *root, struct objects *ret)
{
	int err = -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	ret->root = strdup(root ? root : "");
	if (!ret->root)
		return err;
	while (*ret->root && ret->root[strlen(ret->root) - 1] == '/')
		ret->root[strlen(ret->root) - 1] = '\0';
	err = load_program(ret, path, 0);
	if (!err)
		err = load_needed(ret);
	if (err)
		objects_deinit(ret);
	return err;
}

/* Moves the object at @path, if there, to the front: the program itself. */
static void program_first(struct objects *set, const char *path)
{
	for (size_t i = 1; i < set->n; i++)
		if (!strcmp(set->v[i].path, path)) {
			struct object o = set->v[i];

			memmove(&set->v[1], &set->v[0], i * sizeof(o));
			set->v[0] = o;
		}
	for (size_t i = 0; i < set->n; i++)
		set->v[i].parent = 0;
}

static int add_mapping(struct objects *set, const char *line)
{
	char path[PATH_MAX], perms[5];
	int ret;

	if (sscanf(line, "%*s %4s %*s %*s %*s %4095[^\n]", perms, path) != 2 ||
	    perms[2] != 'x' || path[0] != '/')
		return 0;
	ret = try_file(set, path, path, 0);
	if (ret)
		return ret < 0 ? ret : 0;
	return strstr(path, " (deleted)") ? add_missing(set, path, 0) : 0;
}

int objects_load_pid(pid_t pid, struct objects *ret)
{
	char path[64], exe[PATH_MAX], *line = NULL;
	size_t room = 0, lines = 0;
	ssize_t n;
	FILE *maps;
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	exe[n] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return -errno;
	if (asprintf(&ret->root, "/proc/%d/root", pid) < 0)
		ret->root = NULL;
	/* A process that shares our root: plain paths. */
	if (ret->root) {
		struct stat a, b;

		if (!stat(ret->root, &a) && !stat("/", &b) &&
		    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
			ret->root[0] = '\0';
	}
	while (ret->root && !err && lines++ < MAX_MAPS_LINES &&
	       getline(&line, &room, maps) > 0)
		err = add_mapping(ret, line);
	if (ferror(maps))
		err = -EIO;
	free(line);
	fclose(maps);
	if (!ret->root)
		err = -ENOMEM;
	else if (!err && !ret->n)
		err = -ENOENT;
	if (err)
		objects_deinit(ret);
	else
		program_first(ret, exe);
	return err;
}

const struct object *objects_find(const struct objects *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++) {
		const char *base = strrchr(set->v[i].path, '/');

		if (!strncmp(base ? base + 1 : set->v[i].path, name,
			     strlen(name)) ||
		    (set->v[i].soname && !strcmp(set->v[i].soname, name)))
			return &set->v[i];
	}
	return NULL;
}

const struct object *objects_blocker(const struct objects *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (!set->v[i].marked)
			return &set->v[i];
	return NULL;
}

/* One line "package[:arch][, package...]: path" of dpkg-query -S. */
static void take_owner(struct objects *set, char *line)
{
	char *path = strstr(line, ": /");
	const char *file;

	if (!path || !strncmp(line, "diversion by ", 13))
		return;
	*path = '\0';
	path += 2;
	path[strcspn(path, "\n")] = '\0';
	line[strcspn(line, ",")] = '\0';
	for (size_t i = 0; i < set->n; i++) {
		file = set->v[i].path;
		if (set->v[i].package)
			continue;
		/* Merged /usr: dpkg may know the file under either name. */
		if (!strcmp(file, path) ||
		    (!strncmp(file, "/usr/", 5) && !strcmp(file + 4, path)))
			set->v[i].package = strdup(line);
	}
}

int objects_find_packages(struct objects *set)
{
	char *line = NULL, *root_arg = NULL, **argv = NULL;
	size_t room = 0, n = 0;
	int err = 0, fds[2], status;
	FILE *from;
	pid_t pid;

	if (asprintf(&root_arg, "--admindir=%s/var/lib/dpkg", set->root) < 0)
		return -ENOMEM;
	err = list_add(&argv, &n, strdup("dpkg-query"));
	err = err ?: list_add(&argv, &n, root_arg);
	err = err ?: list_add(&argv, &n, strdup("-S"));
	err = err ?: list_add(&argv, &n, strdup("--"));
	for (size_t i = 0; !err && i < set->n; i++) {
		err = list_add(&argv, &n, strdup(set->v[i].path));
		if (!err && !strncmp(set->v[i].path, "/usr/", 5))
			err = list_add(&argv, &n, strdup(set->v[i].path + 4));
	}
	if (err || pipe2(fds, O_CLOEXEC)) {
		list_free(argv);
		return err ?: -errno;
	}
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, 0);
		dup2(fds[1], 1);
		dup2(null, 2);
		setenv("LC_ALL", "C", 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	list_free(argv);
	from = pid > 0 ? fdopen(fds[0], "r") : NULL;
	if (!from) {
		close(fds[0]);
		return -ENOMEM;
	}
	while (getline(&line, &room, from) > 0)
		take_owner(set, line);
	free(line);
	fclose(from);
	if (waitpid(pid, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : 0;
}

int find_program(const char *name, char **ret)
{
	const char *path = getenv("PATH");
	int err = -ENOENT;
	char *file;

	if (strchr(name, '/')) {
		*ret = strdup(name);
		return *ret ? 0 : -ENOMEM;
	}
	path = path ? path : "/usr/local/bin:/bin:/usr/bin";
	while (*name) {
		size_t len = strcspn(path, ":");
		struct stat st;

		if (asprintf(&file, "%.*s%s%s", (int)len, path,
			     len ? "/" : "./", name) < 0)
			return -ENOMEM;
		if (!stat(file, &st) && S_ISREG(st.st_mode)) {
			if (!access(file, X_OK)) {
				*ret = file;
				return 0;
			}
			err = -EACCES;
		}
		free(file);
		if (!path[len])
			break;
		path += len + 1;
	}
	return err;
}

const char *objects_error(const char *path, int err)
{
	if (err == -ENOEXEC)
		return "no ELF program of a known kind";
	if (err == -ENOENT && path && !access(path, F_OK))
		return "the interpreter that its first line names was not found";
	return strerror(-err);
}

const char *find_program_error(const char *name, int err)
{
	return err == -ENOENT && !strchr(name, '/') ? "not found in PATH" :
						      strerror(-err);
}
