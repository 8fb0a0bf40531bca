# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fleets of machines against the servers that exist. Not part of make check, because they take long:
#
#   make check-fleet  three machines send CPU, off-CPU and heap profiles to OpenTelemetry's
#                   Collector for FLEET_SECONDS (600), while it is killed, a link is cut and a disk
#                   is full; the Collector is built of Debian's packages, once

FLEET_SECONDS	?= 600

.PHONY: check-fleet
check-fleet: all $(B)/selftests/push/allocate
	$(Q)FLEET_SECONDS=$(FLEET_SECONDS) B=$(B) selftests/fleet/fleet_check.py
