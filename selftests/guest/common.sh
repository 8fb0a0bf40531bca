# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What setup, in and shell share: where the cache is, which guests there are, and which Debian
# package has the kernel of each.

SHSTK_CACHE=${SHSTK_CACHE:-$HOME/.cache/shstk}
MIRROR=${SHSTK_MIRROR:-http://deb.debian.org}

# For each guest: Debian's name of the architecture, and the packages of the kernel image and of its
# headers, as patterns for the archive's index. The newest match is taken, because the archive has
# only some point releases.
declare -A KERNEL_ARCH=(
	[arm64-7.2]=arm64 [x86-7.2]=amd64 [x86-6.12]=amd64
	[x86-6.12-deb12]=amd64 [riscv-7.2]=riscv64
	[arm64-7.3]=arm64 [x86-7.3]=amd64
	[arm64-6.18]=arm64 [x86-6.18]=amd64 [x86-6.1]=amd64
	[x86-6.12-rt]=amd64
)
# The folder whose apt knows the guest's packages and whose compiler builds its modules.
declare -A KERNEL_FOLDER=(
	[arm64-7.2]=trixie [x86-7.2]=trixie [x86-6.12]=trixie
	[x86-6.12-deb12]=trixie [riscv-7.2]=forky
	[arm64-7.3]=trixie [x86-7.3]=trixie
	[arm64-6.18]=trixie [x86-6.18]=trixie [x86-6.1]=trixie
	[x86-6.12-rt]=trixie
)
declare -A KERNEL_IMAGE=(
	[arm64-7.2]='linux-binary-7\.2\.[0-9.]+\+deb13[0-9.]*-cloud-arm64'
	[x86-7.2]='linux-binary-7\.2\.[0-9.]+\+deb13[0-9.]*-cloud-amd64'
	[x86-6.12]='linux-image-6\.12\.[0-9.]+\+deb13[0-9.]*-cloud-amd64'
	[x86-6.12-deb12]='linux-image-6\.12\.[0-9.]+\+deb12[0-9.]*-cloud-amd64'
	[arm64-7.3]='linux-binary-7\.3\.[0-9.]+\+deb13[0-9.]*-cloud-arm64'
	[x86-7.3]='linux-binary-7\.3\.[0-9.]+\+deb13[0-9.]*-cloud-amd64'
	[arm64-6.18]='linux-image-6\.18\.15\+deb13-cloud-arm64'
	[x86-6.18]='linux-image-6\.18\.15\+deb13-cloud-amd64'
	[x86-6.1]='linux-image-6\.1\.0-[0-9]+-cloud-amd64'
	[x86-6.12-rt]='linux-image-6\.12\.[0-9.]+\+deb13[0-9.]*-rt-amd64'
	[riscv-7.2]='linux-binary-7\.2\.[0-9.]+\+deb14[0-9.]*-riscv64'
)
GUESTS='arm64-7.2 x86-7.2 x86-6.12 x86-6.12-deb12 x86-6.12-rt riscv-7.2'
# These guests are made only when asked for, by make check-kernels or make check-bpf.
MORE_GUESTS='arm64-7.3 x86-7.3 arm64-6.18 x86-6.18 x86-6.1'

# The archive has the headers of these kernels, but its index does not name them, so that apt cannot
# check them by the index's signature. Therefore their SHA-256 is here: kernel, file, sum.
POOL=$MIRROR/debian/pool/main/l/linux
UNLISTED='
*-6.18 linux-headers-6.18.15+deb13-common_6.18.15-1~bpo13+1_all.deb a54ed9b3be5247fe2e003423e067cb8e8b06e4a44a09459b85cfec0afbcbd5ef
*-6.18 linux-kbuild-6.18.15+deb13_6.18.15-1~bpo13+1_amd64.deb 5e64129020cdb5effd6ed3895ca89608ef17bcf643eedfc8013dad89bab70a02
x86-6.18 linux-headers-6.18.15+deb13-cloud-amd64_6.18.15-1~bpo13+1_amd64.deb 3bd2a70ec82944d17b69824a428defb090708ec284c173f96a4171ba8aa271c2
arm64-6.18 linux-headers-6.18.15+deb13-cloud-arm64_6.18.15-1~bpo13+1_arm64.deb 9fc9dd35ca1078b873906537d642ea447662bb6789ee58f12b945865ba3979c2
'

say()
{
	printf '%s: %s\n' "${0##*/}" "$*"
}

die()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}
