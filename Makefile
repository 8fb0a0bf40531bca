# SPDX-License-Identifier: GPL-2.0-or-later
#
# shstk: instant stack traces from shadow stacks.
#
#   make            build the library, the command and its helpers into build/
#   make demo       profile real programs into build/demo/
#   make check      run every test, natively and in guests; TEST=NAME: only that one
#   make install    install into PREFIX (/usr/local), below DESTDIR if that is set
#   make module     build the kernel modules, for the running kernel too, into build/kmod/
#   make help-all   all other targets too
#
# Each folder describes its own part in a build.mk, read from here: one make
# knows every dependency. V=1 prints the commands.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION	:= 0.1.0
# The date of this version, which the manual pages show.
VERSION_DATE := 2026-11-26
B	:= build
PREFIX	?= /usr/local
LIBDIR	?= $(PREFIX)/lib
DESTDIR	?=
SHSTK_CACHE ?= $(HOME)/.cache/shstk
export SHSTK_CACHE

ifeq ($(origin CC),default)
CC	:= gcc
endif
ifeq ($(origin CXX),default)
CXX	:= g++
endif
# The compiler tells which tools belong to the machine that it compiles for.
tool_of_compiler = $(shell $(CC) -print-prog-name=$(1))
ifeq ($(origin AR),default)
AR	:= $(call tool_of_compiler,ar)
endif
ifeq ($(origin OBJCOPY),undefined)
OBJCOPY	:= $(call tool_of_compiler,objcopy)
endif
ifeq ($(origin NM),undefined)
NM	:= $(call tool_of_compiler,nm)
endif
CLANG	?= clang
ARM64	?= aarch64-linux-gnu-
RISCV	?= riscv64-linux-gnu-
# The build is for the machine that the compiler compiles for, which need not be this one:
#     make CC=aarch64-linux-gnu-gcc
MACHINE	:= $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ARCH	:= $(or $(patsubst riscv64,riscv,$(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(filter \
	x86_64 aarch64 riscv64,$(MACHINE))))),$(error $(CC) makes programs for \
	$(or $(MACHINE),no machine that it names): shstk is for x86_64, aarch64 and riscv64))
comma	:= ,
# Where the compiler looks for libraries and headers, such as x86_64-linux-gnu.
MULTIARCH := $(MACHINE)-linux-gnu
# The emulator that runs the programs that are built, if this machine can't run them.
ifeq ($(origin EMULATOR),undefined)
EMULATOR := $(if $(filter-out $(shell uname -m),$(MACHINE)),$(shell \
	command -v qemu-$(MACHINE)-static || command -v qemu-$(MACHINE)))
endif

# The caller's CPPFLAGS, CFLAGS and LDFLAGS are used for all that is installed. Tests that build for
# other machines have flags of their own.
CFLAGS	?= -O2 -g
OPT	= $(CPPFLAGS) $(CFLAGS)
# Programs with pointers of 32 bits (-m32, -mx32) have other stack frames, though the compiler names
# the same machine for them.
ifeq ($(shell echo __SIZEOF_POINTER__ | $(CC) $(OPT) -E -P - 2>/dev/null),4)
$(error $(CC) $(OPT) makes programs with pointers of 32 bits: shstk is for those of 64 bits)
endif
# Warnings are errors in the project's own checks (make WERROR=1), but not for users who build it.
WERROR	?=
WARN	:= -Wall -Wextra $(if $(WERROR),-Werror)
CSTD	:= -std=gnu11
CPPFLAGS_COMMON := -D_GNU_SOURCE -I. -Iuapi -Ilibshstk

# Installed files are marked as ready for shadow stacks and branch targets, and contain no path of
# the machine that built them. Only commands are hardened further: captures run in signal handlers
# of other programs, where the stack may be small and the C library another one.
MARKED_x86 := -fcf-protection=full
MARKED_arm64 := -mbranch-protection=standard
OWN_FLAGS = $(MARKED_$(ARCH)) -ffile-prefix-map=$(CURDIR)=.
INJECTED_FLAGS := -U_FORTIFY_SOURCE -fno-stack-protector -fno-lto
# Without optimisation the compiler warns of _FORTIFY_SOURCE, so it is set only with -O1 and more,
# and only if the caller's flags do not set it.
FORTIFIED = $(if $(findstring _FORTIFY_SOURCE,$(OPT)),,$(if $(filter-out -O0,$(filter -O%,$(OPT))),\
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENED = -fstack-protector-strong $(FORTIFIED)

# Debian's start files for x86 have no mark, so nothing that is linked with them gets one. The SHSTK
# mark would be true, because each call in their code has its return. The IBT mark would be
# wrong, because .init and .fini (crti.o, crtn.o) lack the endbr64. So shared objects are linked
# without these two files, and programs are marked IBT only if the start files are.
CRT = $(shell $(CC) -print-file-name=$(1))
SHARED_BEGIN_x86 = -nostartfiles $(call CRT,crtbeginS.o) -Wl,-z,shstk -Wl,-z,ibt
SHARED_END_x86 = -lc $(call CRT,crtendS.o)
PROGRAM_x86 := -Wl,-z,shstk
# On arm64 all code that calls and returns in the usual way is ready for GCS; newer linkers can mark
# it.
ifeq ($(ARCH),arm64)
GCS_MARK := $(if $(findstring gcs=always,$(shell $(CC) -Wl,--help 2>/dev/null)),\
	-Wl$(comma)-z$(comma)gcs=always)
endif
SHARED_BEGIN_arm64 = $(GCS_MARK)
PROGRAM_arm64 = $(GCS_MARK)
LINK_FLAGS = $(OPT) $(LDFLAGS) -Wl,-z,now -Wl,-z,relro
# These link an installed shared object and an installed program. $(1): objects and options.
link_shared = $(CC) $(LINK_FLAGS) -shared -o $@ $(SHARED_BEGIN_$(ARCH)) $(1) $(SHARED_END_$(ARCH))
link_program = $(CC) $(LINK_FLAGS) -o $@ $(PROGRAM_$(ARCH)) $(1)

# The folder of kselftest_harness.h, which selftests/guest/setup takes from Debian's linux-source.
KSELFTEST_INC ?= $(SHSTK_CACHE)/kselftest

Q	:= $(if $(V),,@)
say	= $(if $(V),,@printf '  %-8s%s\n' '$(1)' '$(2)';)

all:

include libshstk/build.mk
include $(wildcard tools/build.mk)
include $(wildcard selftests/build.mk)
include $(wildcard kmod/build.mk)
include $(wildcard Documentation/build.mk)
include packaging/build.mk

# Prints the lines "make TARGET text" of the comments at the top of files, each target once. A text
# may go on in further lines, which are indented more. The targets that most people need are listed
# in this file.
HELP_ALL = $(sort $(wildcard */build.mk */*/build.mk */*/*/build.mk selftests/kmod/rules.mk selftests/bpf/guest.mk))
help_of = @awk '/^\#   make / { \
			name = /^\#   make   / ? "" : $$3; \
			on = !seen[name]++; \
			sub(/^\#   make +/, ""); \
			sub(/^[^ ]+ */, name ? "" : "&"); \
			if (on) \
				printf "make %-16s %s\n", name, $$0; \
			next \
		} \
		on && sub(/^\#       +/, "") { printf "%21s %s\n", "", $$0; next } \
		{ on = 0 }'

help:
	$(help_of) Makefile

help-all:
	$(help_of) Makefile $(HELP_ALL)

clean:
	rm -rf $(B)

.PHONY: all help help-all clean install check demo bench

# make check-builds builds whole trees below $(B)/builds: their .d files are left out.
-include $(shell test -d $(B) && find $(B) -path $(B)/builds -prune -o -type f -name '*.d' -print)
