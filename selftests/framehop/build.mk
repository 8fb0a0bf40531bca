# SPDX-License-Identifier: GPL-2.0-or-later
#
# Builds framehop as a library for the oracle and the benchmark. Its source is in Debian 14. The
# folder of the cache that holds it, with Rust, is made when framehop is first asked for.
#
#   make framehop   build framehop, an unwinder in Rust, with which make bench compares
#                   from then on

FRAMEHOP := $(B)/framehop
FRAMEHOP_LIB := $(FRAMEHOP)/libframehop-peer.so

$(FRAMEHOP)/modules.o: selftests/framehop/modules.c selftests/framehop/peer.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CSTD) $(WARN) $(CPPFLAGS_COMMON) $(OPT) -c -o $@ $<

# Cargo writes beside the sources, so they are copied. It does not use the network.
$(FRAMEHOP_LIB): selftests/framehop/peer.rs selftests/framehop/Cargo.toml
	$(Q)selftests/guest/setup rust
	@mkdir -p $(FRAMEHOP)/src/.cargo
	$(Q)cp $^ $(FRAMEHOP)/src
	$(Q)printf '%s\n' '[source.crates-io]' 'replace-with = "debian"' '[source.debian]' \
		'directory = "/usr/share/cargo/registry"' >$(FRAMEHOP)/src/.cargo/config.toml
	$(call say,CARGO,$@)cd $(FRAMEHOP)/src && $(CURDIR)/selftests/guest/in rust \
		cargo build --quiet --release --offline
	$(Q)cp --remove-destination $(FRAMEHOP)/src/target/release/libframehop_peer.so $@

framehop: $(FRAMEHOP_LIB)

.PHONY: framehop
