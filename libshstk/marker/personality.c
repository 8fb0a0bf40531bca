// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * personality.c - lets exceptions and forced unwinding pass a marker.
 *
 * For an unwinder a trampoline is a frame with the same stack pointer as the frame
 * behind it. The unwinder recognises the frame with the handler by its stack pointer,
 * so in the second phase it may take the trampoline for that frame, and stop there
 * with an error. So the trampoline takes control, as a frame with a destructor does,
 * puts the true return address back and resumes the unwinding without the trampoline.
 * But then the frames that were unwound before are gone, which std::terminate() would
 * show. So the first phase, if there is one, takes all markers back, and the second
 * phase finds none.
 */
#include <dlfcn.h>
#include <unwind.h>

#include "marker.h"

#if HAVE_TRAMPOLINE

#define WEAK(fn) extern __typeof__(fn) fn __attribute__((weak))
WEAK(dladdr);
WEAK(dlsym);
WEAK(_Unwind_GetIP);
WEAK(_Unwind_SetIP);
WEAK(_Unwind_SetGR);
WEAK(_Unwind_Resume);

extern const uint8_t shstk_marker_landing[] __attribute__((visibility("hidden")));

/* The function that the landing pad jumps to. */
__thread __typeof__(&_Unwind_Resume) shstk_marker_resume
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

struct unwinder {
	__typeof__(&_Unwind_GetIP) get_ip;
	__typeof__(&_Unwind_SetIP) set_ip;
	__typeof__(&_Unwind_SetGR) set_gr;
	__typeof__(&_Unwind_Resume) resume;
};

/* Returns the base of the object that contains @address, or NULL. */
static const void *object_of(const void *address, Dl_info *info)
{
	return dladdr && dladdr(address, info) ? info->dli_fbase : NULL;
}

/*
 * Finds the functions of the unwinder that contains the address @caller. A process may
 * have several unwinders, and this object may be linked with another one or with none.
 * Returns false if the functions are not found.
 */
static bool find_unwinder(struct unwinder *u, const void *caller)
{
	Dl_info info, linked;
	const void *object = object_of(caller, &info);
	__typeof__(&dlopen) open = NULL;
	void *lib;

	u->get_ip = _Unwind_GetIP;
	u->set_ip = _Unwind_SetIP;
	u->set_gr = _Unwind_SetGR;
	u->resume = _Unwind_Resume;
	if (u->resume && u->get_ip && u->set_ip && u->set_gr &&
	    (!object || object == object_of(*(void **)&u->resume, &linked)))
		return true;
	/* dlopen() is found by dlsym(): a direct use makes the linker warn in static programs. */
	if (object && dlsym)
		*(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
	lib = open ? open(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
	if (!lib)
		return false;
	/* The library stays open, because it may throw the next exception too. */
	*(void **)&u->get_ip = dlsym(lib, "_Unwind_GetIP");
	*(void **)&u->set_ip = dlsym(lib, "_Unwind_SetIP");
	*(void **)&u->set_gr = dlsym(lib, "_Unwind_SetGR");
	*(void **)&u->resume = dlsym(lib, "_Unwind_Resume");
	return u->get_ip && u->set_ip && u->set_gr && u->resume;
}

_Unwind_Reason_Code
shstk_marker_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
			 struct _Unwind_Exception *exception, struct _Unwind_Context *context)
	__attribute__((visibility("hidden"), used));

_Unwind_Reason_Code shstk_marker_personality(int version, _Unwind_Action actions,
					     _Unwind_Exception_Class class,
					     struct _Unwind_Exception *exception,
					     struct _Unwind_Context *context)
{
	const struct markers *m = markers_of(thread_self);
	struct trampoline *r;
	struct unwinder u;

	(void)class;
	if (version != 1)
		return _URC_FATAL_PHASE1_ERROR;
	if (actions & _UA_SEARCH_PHASE && m)
		markers_give_back(m, (uintptr_t)__builtin_frame_address(0));
	if (actions & _UA_SEARCH_PHASE || !find_unwinder(&u, __builtin_return_address(0)))
		return _URC_CONTINUE_UNWIND;
	r = trampoline_of(native_strip(u.get_ip(context)));
	store_relaxed(&r->set, false);
	shstk_marker_resume = u.resume;
	u.set_gr(context, __builtin_eh_return_data_regno(0), (uintptr_t)exception);
	u.set_gr(context, __builtin_eh_return_data_regno(1), r->ra);
	u.set_ip(context, (uintptr_t)shstk_marker_landing);
	return _URC_INSTALL_CONTEXT;
}

#endif
