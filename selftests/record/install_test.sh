#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests `make install` into an empty folder: what was installed works from there, and a program
# builds against it by pkg-config. Prints KTAP.

set -u
top=$(mktemp -d "$(realpath "$(dirname "$0")")/install.XXXXXX")
trap 'rm -rf "$top"' EXIT
# This is the name under which make knows the folder, with which the dependencies begin that it
# writes.
build=$(realpath --relative-to=. "$(dirname "$0")/../..")
number=0
failed=0

# result STATUS NAME: prints a result in KTAP.
result() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number $2"
	else
		sed 's/^/# /' "$top/log"
		echo "not ok $number $2"
		failed=1
	fi
}

echo "KTAP version 1"
echo "1..9"

env -u MAKEFLAGS -u MAKELEVEL make -s install B="$build" DESTDIR="$top" \
	PREFIX=/usr >"$top/log" 2>&1
result $? "make install"

missing=0
: >"$top/log"
for file in bin/shstk lib/shstk/shstk-push lib/shstk/libshstk-agent.so lib/libshstk.a \
	lib/libshstk.so lib/libshstk.so.0 include/shstk.h include/shstk.hpp include/shstk_go.h include/shstk_marker.h \
	lib/libshstk-go-symbolize.so include/shstk_go_symbolize.h \
	lib/libshstk-symbolize.so include/shstk_symbolize.h lib/pkgconfig/libshstk-symbolize.pc \
	lib/libshstk-crash.so include/shstk_crash.h lib/pkgconfig/libshstk-crash.pc \
	lib/libshstk-bpf.so include/shstk_bpf.h include/shstk_stack.bpf.h lib/pkgconfig/libshstk-bpf.pc \
	lib/pkgconfig/libshstk.pc share/man/man1/shstk.1 \
	share/man/man1/shstk-record.1 share/man/man1/shstk-trace.1 share/man/man1/shstk-crash.1 \
	share/man/man1/shstk-report.1 share/man/man1/shstk-diff.1 \
	share/man/man1/shstk-push.1 share/man/man1/shstk-unwind.1 share/man/man1/shstk-broker.1 \
	lib/systemd/system/shstkd-profile.service lib/systemd/system/shstk-broker.socket lib/systemd/system/shstk-broker.service \
	share/man/man3/libshstk.3 share/man/man3/shstk_capture.3 share/man/man3/shstk_unwind.3 \
	share/man/man3/shstk_status_set.3 share/man/man3/shstk_symbolize.3 share/man/man3/shstk_marker.3 \
	share/man/man3/shstk_crash.3 share/man/man3/shstk_bpf.3 share/bash-completion/completions/shstk; do
	if ! [ -s "$top/usr/$file" ]; then
		echo "$file is missing" >>"$top/log"
		missing=1
	fi
done
if ! cmp "$top/etc/shstk/profile.conf" tools/record/profile.conf >>"$top/log" 2>&1; then
	missing=1
fi
result $missing "every file is there"

# A changed file stays when a new version is installed, and when it is removed.
echo '# mine' >>"$top/etc/shstk/profile.conf"
(file=config:tools/record/profile.conf:/etc/shstk/profile.conf
	packaging/install "$top" "$file" && packaging/install --remove "$top" "$file" -- /etc/shstk &&
	grep '^# mine' "$top/etc/shstk/profile.conf" && grep '^ExecStart=.*--config=/etc/shstk/profile.conf' \
	"$top/usr/lib/systemd/system/shstkd-profile.service") >"$top/log" 2>&1
result $? "a configuration file that was changed stays"

# The path must be a whole word: if the tree is in /shstk, /dev/shstk must not match.
tree=$(pwd | sed 's/[].[\*^$+?(){}|]/\\&/g')
(! grep -rE "(^|-[IL]|[^[:alnum:]_./~-])$tree(/|[^[:alnum:]_.-]|\$)" \
	"$top/usr/lib/pkgconfig" "$top/usr/share/man") >"$top/log" 2>&1
result $? "no path of the build tree in what is installed"

cat >"$top/try.c" <<'EOF'
#include <shstk.h>
#include <stdio.h>

int main(void)
{
	uint64_t pcs[16];
	int n = shstk_capture(pcs, 16, NULL, NULL);

	printf("%d entries\n", n);
	return n < 2;
}
EOF
flags=$(PKG_CONFIG_PATH=$top/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$top \
	PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
	pkg-config --cflags --libs libshstk)
# compile NAME: compiles NAME.c with the flags that pkg-config prints
compile() {
	# shellcheck disable=SC2086
	gcc -o "$top/$1" "$top/$1.c" $flags
}
(compile try && LD_LIBRARY_PATH=$top/usr/lib "$top/try") >"$top/log" 2>&1
result $? "a program builds by pkg-config and captures"

# Writes each example of a manual page to a file. An example is an indented block that begins with
# #define or #include.
examples() { # PAGE NAME: NAME is the beginning of the files' names
	awk -v top="$top" -v name="$2" '
	!on && /^ +#(define|include) / { on = 1; n++; file = top "/" name n ".c" }
	/^[^ ]/ { on = 0 }
	on { print >file }
' "$1"
}
examples Documentation/libshstk.3.rst overview
examples Documentation/shstk_capture.3.rst capture
examples Documentation/shstk_unwind.3.rst unwind
examples Documentation/shstk_status_set.3.rst status
(for example in overview1 capture1 capture2 unwind1 status1; do
		compile $example && LD_LIBRARY_PATH=$top/usr/lib "$top/$example" || exit 1
	done) >"$top/log" 2>&1
result $? "the examples of the manual pages of the library build and run"

examples Documentation/shstk_marker.3.rst marker
(flags="-I$top/usr/include -L$top/usr/lib -l:libshstk.a -pthread" && compile marker1 &&
	"$top/marker1") >"$top/log" 2>&1
result $? "the example of shstk_marker(3) builds and runs with the static library"

readelf -d "$top/try" | grep -q 'NEEDED.*libshstk\.so\.0' >"$top/log" 2>&1
result $? "it needs the library by its soname"

(cd "$top" && "$top/usr/bin/shstk" record -o out.folded -- \
	sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done' &&
	grep -q ';__libc_start_main' out.folded) >"$top/log" 2>&1
result $? "the installed command finds its agent and records"

exit $failed
