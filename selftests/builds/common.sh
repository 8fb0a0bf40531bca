# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Functions that run and packages share, for folders of the cache that hold a Debian suite. Those
# scripts set $top (the tree) and $log (a file for what commands print), and read
# selftests/guest/common.sh before.

# The commit that is built, which stays the same if another one is made meanwhile.
head=$(git -C "$top" rev-parse HEAD)

# Runs a command in the folder of suite $1, in the current directory. If the caller uses ccache
# (CCACHE_DIR), the command uses it, too, but gets no objects that name the sources of another
# folder: tests read lines of these.
inside()
{
	local suite=$1

	shift
	if [ -n "${CCACHE_DIR-}" ] && [ -d "$SHSTK_CACHE/builds/$suite/usr/lib/ccache" ]; then
		set -- env PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin \
			CCACHE_DIR="$CCACHE_DIR" CCACHE_MAXSIZE="${CCACHE_MAXSIZE-5G}" "$@"
	fi
	"$top/selftests/guest/in" "builds/$suite" "$@"
}

quiet()
{
	"$@" >>"$log" 2>&1
}

# Runs a command while no other run of these scripts changes folder $1 of the cache. Several may run at
# the same time: one makes the folder, and the others wait. What the command starts does not keep the
# lock, so a process that stays behind blocks nobody.
locked()
{
	local name=$1

	shift
	mkdir -p "$SHSTK_CACHE/builds"
	(
		flock 8
		"$@" 8>&-
	) 8>>"$SHSTK_CACHE/builds/$name.lock"
}

# Makes the smallest system of suite $1 in folder $2.
make_base()
{
	locked "${2##*/}" base_in "$1" "$2"
}

base_in()
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
	# Packages that are installed in the folder must not start services.
	printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
	chmod 755 "$2/usr/sbin/policy-rc.d"
	# A folder that is lost is made again: nothing waits for the disk.
	echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io"
	: >"$2.base"
}

# Makes the folder of suite $1, with the packages that building and testing need.
make_folder()
{
	locked "$1" folder_with_packages "$1"
}

folder_with_packages()
{
	local d=$SHSTK_CACHE/builds/$1 sum

	sum=$(cat "$top/.ci/packages" "$top/.ci/packages-install" | sha256sum)
	[ "$(cat "$d.made" 2>/dev/null)" != "$sum" ] || return 0
	base_in "$1" "$d" || return 1
	# A run that was ended may have left packages behind that are not configured; apt-get would refuse.
	quiet inside "$1" dpkg --configure -a || return 1
	quiet inside "$1" .ci/packages-install build check demo guest || return 1
	echo "$sum" >"$d.made"
}

# Installs the packages $2 (separated by commas) in the folder of suite $1.
add_packages()
{
	[ "$2" != - ] || return 0
	# shellcheck disable=SC2016
	locked "$1" quiet inside "$1" sh -c 'export DEBIAN_FRONTEND=noninteractive
		for package; do
			[ "$(dpkg-query -W -f "\${db:Status-Status}" "$package" 2>/dev/null)" = installed ] || {
				dpkg --configure -a && apt-get -q update
				exec apt-get -q -y --no-install-recommends install "$@"
			}
		done' sh ${2//,/ }
}

# Copies the committed tree to $1; $2 is the commit, $head without it.
copy_tree()
{
	rm -rf "$1"
	mkdir -p "$1" && git -C "$top" archive "${2-$head}" | tar -x -C "$1"
}
