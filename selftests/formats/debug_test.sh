#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# debug_test - tests unwind information that is not in the mapped part of a file: it is compressed,
# in .gnu_debugdata, or in a separate debug file that is found by build ID or .gnu_debuglink. The
# program itself says whether its trace was exact. Without the information every frame is guessed
# from the code, whatever the dynamic linker has left on the stack.

dir=${B:-build}/selftests/formats
work=$dir/debug
n=0
bad=0

# point WANTED NAME COMMAND...: a test point, passed if the command prints WANTED
point()
{
	want=$1 name=$2
	shift 2
	n=$((n + 1))
	have=$("$@" 2>&1)
	if [ "$have" = "$want" ]; then
		echo "ok $n $name"
	else
		bad=1
		echo "not ok $n $name: $have, not $want"
	fi
}

# only_frame FILE TO: copies a file with .debug_frame as its only debug section, not compressed
only_frame()
{
	objcopy --only-keep-debug --decompress-debug-sections "$1" "$2" &&
	objcopy -R .debug_info -R .debug_line -R .debug_abbrev -R .debug_str \
		-R .debug_line_str -R .debug_aranges -R .debug_loclists \
		-R .debug_rnglists "$2"
}

echo 'KTAP version 1'
echo '1..14'
rm -rf "$work"
mkdir -p "$work/dirs" "$work/none"
p=$work/prog
cp "$dir/debugdata" "$p"
point exact 'debug_frame in the file' "$p" "$work/none"

objcopy --compress-debug-sections "$p" "$p-z"
point exact 'compressed debug_frame' "$p-z" "$work/none"
point guessed 'compressed debug_frame, nobody asked for it' "$p-z"
for format in zstd zlib-gnu; do
	objcopy --compress-debug-sections=$format "$p" "$p-$format"
	point exact "debug_frame compressed as $format" "$p-$format" "$work/none"
done

strip "$p" -o "$p-stripped"
point guessed 'without debug_frame' "$p-stripped" "$work/none"
point guessed 'without debug_frame, bound at start' env LD_BIND_NOW=1 "$p-stripped" "$work/none"

only_frame "$p" "$work/mini"
xz -kf "$work/mini"
objcopy --add-section .gnu_debugdata="$work/mini.xz" "$p-stripped" "$p-mini"
point exact 'packed in gnu_debugdata' "$p-mini" "$work/none"
head -c 100 "$work/mini.xz" >"$work/short.xz"
objcopy --add-section .gnu_debugdata="$work/short.xz" "$p-stripped" "$p-short"
point guessed 'gnu_debugdata cut off' "$p-short" "$work/none"

id=$(readelf -n "$p" | sed -n 's/.*Build ID: //p')
to=$work/dirs/.build-id/$(echo "$id" | cut -c1-2)
mkdir -p "$to"
objcopy --only-keep-debug --compress-debug-sections "$p" \
	"$to/$(echo "$id" | cut -c3-).debug"
point exact 'debug file by build ID' "$p-stripped" "$work/none:$work/dirs"

objcopy --only-keep-debug "$p" "$work/prog.debug"
objcopy --add-gnu-debuglink="$work/prog.debug" "$p-stripped" "$p-link"
point exact 'debug file by debuglink' "$p-link" "$work/none"
mkdir -p "$work/.debug"
mv "$work/prog.debug" "$work/.debug"
point exact 'debug file by debuglink, in .debug' "$p-link" "$work/none"
echo >>"$work/.debug/prog.debug"
point guessed 'debug file with another checksum' "$p-link" "$work/none"
rm "$work/.debug/prog.debug"
point guessed 'debug file gone' "$p-link" "$work/none"
exit $bad
