# SPDX-License-Identifier: GPL-2.0-or-later
#
# shstk: instant stack traces from shadow stacks.
#
#   make            build the library, the command and its helpers into build/
#   make demo       profile real programs into build/demo/
#   make check      run every test, natively and in guests
#   make fuzz       feed random bytes to every parser, FUZZ_SECONDS each
#   make bench      measure against peers, writes build/bench.csv
#   make install    install into PREFIX (/usr/local), below DESTDIR if that is set
#   make help       all targets
#
# Each folder describes its own part in a build.mk, read from here: one make
# knows every dependency. V=1 prints the commands.

MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION	:= 0.1.0
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
ifeq ($(origin AR),default)
AR	:= ar
endif
OBJCOPY	?= objcopy
NM	?= nm
PKG_CONFIG ?= pkg-config
CLANG	?= clang
ARM64	?= aarch64-linux-gnu-
RISCV	?= riscv64-linux-gnu-
ARCH	:= $(patsubst riscv64,riscv,$(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m))))

OPT	?= -O2 -g
WARN	:= -Wall -Wextra -Werror
CSTD	:= -std=gnu11
CPPFLAGS_COMMON := -D_GNU_SOURCE -I. -Iuapi -Ilibshstk

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

# "make TARGET text" in the comments at the top of each file, once for each target;
# a text may go on in further lines, which are indented more.
help:
	@awk '/^#   make / { \
			name = /^#   make   / ? "" : $$3; \
			on = !seen[name]++; \
			sub(/^#   make +/, ""); \
			sub(/^[^ ]+ +/, name ? "" : "&"); \
			if (on) \
				printf "make %-16s %s\n", name, $$0; \
			next \
		} \
		on && sub(/^#       +/, "") { printf "%21s %s\n", "", $$0; next } \
		{ on = 0 }' Makefile $(wildcard */build.mk */*/build.mk */*/*/build.mk selftests/kmod/rules.mk)

clean:
	rm -rf $(B)

.PHONY: all help clean install check demo bench

-include $(shell test -d $(B) && find $(B) -name '*.d')
