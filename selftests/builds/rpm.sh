# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Functions of packages for RPMs, which Debian's rpm makes and installs. They have the paths of Fedora.

rpm_tests='rpm rpm_install rpm_command rpm_library rpm_go rpm_modules rpm_upgrade rpm_remove'

# Makes RPMs in suite $1, in $work/rpm; $2 comes behind the number of the release. Dependencies of the
# build are not checked, because Debian does not have Fedora's names of packages.
rpm_build()
{
	local rpms=$work/rpm

	mkdir -p "$rpms/SOURCES"
	rm -rf "$rpms/RPMS"
	git -C "$top" archive --prefix="shstk-$version/" -o "$rpms/SOURCES/shstk-$version.tar.gz" "$head"
	cd "$rpms" && quiet inside "$1" rpmbuild -bb --nodeps --define "_topdir $rpms" --define "dist $2" \
		--define '_libdir /usr/lib64' --define '_unitdir /usr/lib/systemd/system' \
		--define '_sysusersdir /usr/lib/sysusers.d' --define '_udevrulesdir /usr/lib/udev/rules.d' \
		--define 'debug_package %{nil}' "$tree/packaging/shstk.spec" ||
		{ tail -5 "$log" | sed 's/^/# /'; return 1; }
	[ "$(find "$rpms/RPMS" -name '*.rpm' | wc -l)" = 5 ]
}

# Tests that the spec file makes RPMs.
test_rpm()
{
	add_packages "$1" rpm,debugedit,rpmlint && rpm_build "$1" .one || return 1
	rm -rf "$out/$1/rpm" && mkdir -p "$out/$1/rpm" && cp "$work"/rpm/RPMS/*/*.rpm "$out/$1/rpm/" ||
		return 1
	# What Debian's rpmlint says of RPMs goes by no distribution's rules, so only the spec file is
	# checked. A library's package has a name by the rules of another distribution.
	quiet inside "$1" rpmlint "$tree/packaging/shstk.spec"
	! grep ' E: ' "$log" | grep -v 'lib-package-without-%mklibname' | sed 's/^/# /' | grep .
}

# Runs a command in a copy of the folder where the tree is built: that has all libraries.
in_rpm_copy()
{
	local copy=$work/rpm-copy lower=$1

	in_copy "$@"
}

# Makes an RPM without files, which says by rpm's own rules what the libraries of a Debian system
# provide. So rpm checks the dependencies of the RPMs, down to versions of symbols.
# shellcheck disable=SC2016
rpm_system='
	spec=/tmp/system.spec
	printf "%s: %s\n" Name system Version 1 Release 1 Summary Debian License none BuildArch noarch >$spec
	{
		find /usr/lib/x86_64-linux-gnu /usr/lib64 -maxdepth 1 -name "*.so*" |
			/usr/lib/rpm/elfdeps --provides || :
		printf "%s\n" dkms make /bin/sh /usr/bin/bash /usr/bin/sh /usr/bin/pkg-config "rtld(GNU_HASH)"
	} | sort -u | sed "s/^/Provides: /" >>$spec
	printf "%s\n\n" "%description" . "%files" >>$spec
	rpmbuild -bb --define "_topdir /tmp/system" $spec
	rpm -U --replacepkgs /tmp/system/RPMS/noarch/system-1-1.noarch.rpm
'

# Tests that rpm installs the RPMs, with their dependencies, and finds all files as they should be.
test_rpm_install()
{
	# shellcheck disable=SC2016
	in_rpm_copy "$1" sh -e -c 'apt-get -q update
		apt-get -q -y --no-install-recommends install dkms linux-headers-amd64 '"$test_packages $rpm_system"'
		echo /usr/lib64 >/etc/ld.so.conf.d/rpm.conf
		rpm -i -v /packages/rpm/*.rpm
		ldconfig
		rpm -V -a
		getent group shstk
		shstk --version'
}

# Runs test $2 of debian/tests with what the RPMs installed.
rpm_test()
{
	# shellcheck disable=SC2016
	in_rpm_copy "$1" sh -e -c 'rm -rf "$AUTOPKGTEST_TMP"
		mkdir -p "$AUTOPKGTEST_TMP"
		export PKG_CONFIG_PATH=/usr/lib64/pkgconfig shstk_DIR=/usr/lib64/cmake/shstk
		cd /tree
		exec "debian/tests/$1"' sh "$2"
}

test_rpm_command() { rpm_test "$1" command; }
test_rpm_library() { rpm_test "$1" library; }
test_rpm_go() { rpm_test "$1" go; }

# The RPM has DKMS build for each kernel that has headers.
test_rpm_modules() { rpm_test "$1" modules; }

# Tests that a later release takes the place of this one, and that its modules stay.
test_rpm_upgrade()
{
	rpm_build "$1" .two && rm -rf "$out/$1/rpm/two" && mkdir "$out/$1/rpm/two" &&
		cp "$work"/rpm/RPMS/*/*.rpm "$out/$1/rpm/two/" || return 1
	# shellcheck disable=SC2016
	in_rpm_copy "$1" sh -e -c 'rpm -U -v /packages/rpm/two/*.rpm
		rpm -V -a
		[ "$(rpm -q -a "*shstk*" | grep -c "1\.two")" = 5 ]
		shstk --version' && rpm_test "$1" modules
}

# Tests that nothing is left once the RPMs are removed.
test_rpm_remove()
{
	# shellcheck disable=SC2016
	in_rpm_copy "$1" sh -e -c 'rpm -e $(rpm -q -a "*shstk*")
		left=$(find /usr /etc /var/lib/dkms /lib/modules -name "*shstk*" \
			! -path "/usr/src/linux-headers-*" ! -path "*/linux/*" 2>/dev/null)
		[ -z "$left" ] || { echo "left: $left"; exit 1; }'
}
