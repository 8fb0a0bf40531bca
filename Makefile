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
# The day of that version, for the manual pages.
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
# The compiler knows the tools for what it makes programs for.
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
# What is built for is what the compiler makes programs for, which need not be this machine:
#     make CC=aarch64-linux-gnu-gcc
MACHINE	:= $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
ARCH	:= $(or $(patsubst riscv64,riscv,$(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(filter \
	x86_64 aarch64 riscv64,$(MACHINE))))),$(error $(CC) makes programs for \
	$(or $(MACHINE),no machine that it names): shstk is for x86_64, aarch64 and riscv64))
comma	:= ,
# Where the compiler looks for libraries and headers, such as x86_64-linux-gnu.
MULTIARCH := $(MACHINE)-linux-gnu
# What runs the programs that are built, if this machine can't.
ifeq ($(origin EMULATOR),undefined)
EMULATOR := $(if $(filter-out $(shell uname -m),$(MACHINE)),$(shell \
	command -v qemu-$(MACHINE)-static || command -v qemu-$(MACHINE)))
endif

# The caller's CPPFLAGS, CFLAGS and LDFLAGS reach all that is installed. What tests build
# for other machines has flags of its own.
CFLAGS	?= -O2 -g
OPT	= $(CPPFLAGS) $(CFLAGS)
# Programs with short pointers (-m32, -mx32) have their own stacks, though the machine's name fits.
ifeq ($(shell echo __SIZEOF_POINTER__ | $(CC) $(OPT) -E -P - 2>/dev/null),4)
$(error $(CC) $(OPT) makes programs with pointers of 32 bits: shstk is for those of 64 bits)
endif
# Warnings are errors for our own checks (make WERROR=1), never for who only builds.
WERROR	?=
WARN	:= -Wall -Wextra $(if $(WERROR),-Werror)
CSTD	:= -std=gnu11
CPPFLAGS_COMMON := -D_GNU_SOURCE -I. -Iuapi -Ilibshstk

# What is installed is marked as ready for shadow stacks and branch targets, and names no folder
# of the machine that built it. Only commands are hardened further: captures run in handlers of
# other programs, on little stack, perhaps beside another C library.
MARKED_x86 := -fcf-protection=full
MARKED_arm64 := -mbranch-protection=standard
OWN_FLAGS = $(MARKED_$(ARCH)) -ffile-prefix-map=$(CURDIR)=.
BARE_FLAGS := -U_FORTIFY_SOURCE -fno-stack-protector -fno-lto
# Fortified where the compiler optimises, without which it warns, unless the caller says how.
FORTIFIED = $(if $(findstring _FORTIFY_SOURCE,$(OPT)),,$(if $(filter-out -O0,$(filter -O%,$(OPT))),\
	-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDENED = -fstack-protector-strong $(FORTIFIED)

# Debian's start files of x86 carry no mark, which takes it from all that is linked with them.
# SHSTK is true all the same: their code calls and returns in pairs. IBT is not: .init and
# .fini (crti.o, crtn.o) lack the endbr64. So shared objects do without these two, and
# programs are marked IBT where the start files are.
CRT = $(shell $(CC) -print-file-name=$(1))
SHARED_BEGIN_x86 = -nostartfiles $(call CRT,crtbeginS.o) -Wl,-z,shstk -Wl,-z,ibt
SHARED_END_x86 = -lc $(call CRT,crtendS.o)
PROGRAM_x86 := -Wl,-z,shstk
# On arm64 what calls and returns is ready for GCS as it is: newer linkers give the mark.
ifeq ($(ARCH),arm64)
GCS_MARK := $(if $(findstring gcs=always,$(shell $(CC) -Wl,--help 2>/dev/null)),\
	-Wl$(comma)-z$(comma)gcs=always)
endif
SHARED_BEGIN_arm64 = $(GCS_MARK)
PROGRAM_arm64 = $(GCS_MARK)
LINK_FLAGS = $(OPT) $(LDFLAGS) -Wl,-z,now -Wl,-z,relro
# $(1): objects and options. A shared object that is installed; a program that is.
link_shared = $(CC) $(LINK_FLAGS) -shared -o $@ $(SHARED_BEGIN_$(ARCH)) $(1) $(SHARED_END_$(ARCH))
link_program = $(CC) $(LINK_FLAGS) -o $@ $(PROGRAM_$(ARCH)) $(1)

# Where kselftest_harness.h lies; taken from Debian's linux-source by
# selftests/guest/setup.
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

# "make TARGET text" in the comments at the top of a file, once for each target; a text may
# go on in further lines, which are indented more. What most people need stands in this file.
HELP_ALL = $(wildcard */build.mk */*/build.mk */*/*/build.mk selftests/kmod/rules.mk selftests/bpf/guest.mk)
help_of = @awk '/^\#   make / { \
			name = /^\#   make   / ? "" : $$3; \
			on = !seen[name]++; \
			sub(/^\#   make +/, ""); \
			sub(/^[^ ]+ +/, name ? "" : "&"); \
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

# Not those of whole trees that make check-builds builds in there.
-include $(shell test -d $(B) && find $(B) -path $(B)/builds -prune -o -type f -name '*.d' -print)
