# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What run and packages share: folders of the cache with Debian suites. They set $top (the tree)
# and $log (what commands print), and have read selftests/guest/common.sh.

# Runs a command in the folder of suite $1, in the current directory.
# A cache of the caller's (CCACHE_DIR) is used there, too.
inside()
{
	local suite=$1

	shift
	if [ -n "${CCACHE_DIR-}" ] && [ -d "$SHSTK_CACHE/builds/$suite/usr/lib/ccache" ]; then
		set -- env PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin \
			CCACHE_DIR="$CCACHE_DIR" CCACHE_BASEDIR="$top" CCACHE_NOHASHDIR=1 \
			CCACHE_MAXSIZE="${CCACHE_MAXSIZE-5G}" "$@"
	fi
	"$top/selftests/guest/in" "builds/$suite" "$@"
}

quiet()
{
	"$@" >>"$log" 2>&1
}

# Folder $2 with the smallest system of suite $1.
make_base()
{
	local key=/usr/share/keyrings/debian-archive-keyring.gpg

	[ ! -e "$2.base" ] || return 0
	mkdir -p "${2%/*}"
	rm -rf "$2"
	quiet mmdebstrap --mode=root --variant=minbase --skip=check/empty,cleanup/apt/lists \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--aptopt='APT::Install-Recommends "false"' \
		--aptopt='Acquire::Languages "none"' --include=ca-certificates \
		"$1" "$2" "deb [signed-by=$key] $MIRROR/debian $1 main" || return 1
	# No service is started in there.
	printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
	chmod 755 "$2/usr/sbin/policy-rc.d"
	: >"$2.base"
}

# The folder of suite $1, whose packages for the README's two commands are installed.
make_folder()
{
	local d=$SHSTK_CACHE/builds/$1 sum

	sum=$(cat "$top/.ci/packages" "$top/.ci/packages-install" | sha256sum)
	[ "$(cat "$d.made" 2>/dev/null)" != "$sum" ] || return 0
	mkdir -p "$SHSTK_CACHE/builds"
	make_base "$1" "$d" || return 1
	quiet inside "$1" .ci/packages-install build check demo guest || return 1
	echo "$sum" >"$d.made"
}

# Packages $2 (with commas) in the folder of suite $1.
add_packages()
{
	[ "$2" != - ] || return 0
	# shellcheck disable=SC2016
	quiet inside "$1" sh -c 'export DEBIAN_FRONTEND=noninteractive
		for package; do
			[ "$(dpkg-query -W -f "\${db:Status-Status}" "$package" 2>/dev/null)" = installed ] || {
				apt-get -q update
				exec apt-get -q -y --no-install-recommends install "$@"
			}
		done' sh ${2//,/ }
}

# The tree as it is committed, at $1; of another commit if $2 is one.
copy_tree()
{
	rm -rf "$1"
	mkdir -p "$1" && git -C "$top" archive "${2-HEAD}" | tar -x -C "$1"
}
