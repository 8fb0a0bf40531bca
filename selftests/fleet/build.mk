# SPDX-License-Identifier: GPL-2.0-or-later
#
# Fleets of machines against the servers that exist. Not part of make check, because they take long:
#
#   make check-fleet  three machines send CPU, off-CPU and heap profiles to OpenTelemetry's
#                   Collector for FLEET_SECONDS (600), while it is killed, a link is cut and a disk
#                   is full; the Collector is built of Debian's packages, once
#   make check-load   memory, descriptors and profiles of shstk record -a for LOAD_SECONDS (480) with
#                   500 processes that come and go, and LOAD_THREADS (5000)
#   make bench-fleet  what shstk record costs with 500 idle processes, beside its bars

FLEET_SECONDS	?= 600
LOAD_SECONDS	?= 480
LOAD_THREADS	?= 5000
BENCH_SECONDS	?= 60

.PHONY: check-fleet check-load bench-fleet
check-fleet: all $(B)/selftests/push/allocate
	$(Q)FLEET_SECONDS=$(FLEET_SECONDS) B=$(B) selftests/fleet/fleet_check.py

$(B)/selftests/fleet/crowd: selftests/fleet/crowd.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) -D_GNU_SOURCE -O1 -g -pthread -o $@ $<

check-load: all $(B)/selftests/fleet/crowd
	$(Q)LOAD_SECONDS=$(LOAD_SECONDS) LOAD_THREADS=$(LOAD_THREADS) B=$(B) selftests/fleet/load_check.py

bench-fleet: all $(B)/selftests/fleet/crowd
	$(Q)BENCH_SECONDS=$(BENCH_SECONDS) B=$(B) selftests/fleet/fleet_bench.py
