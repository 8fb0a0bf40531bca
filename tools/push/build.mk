# SPDX-License-Identifier: GPL-2.0-or-later
#
# shstk-push, the program that `shstk push` starts to send what it has prepared. Only this one is
# linked with libcurl. Where its headers are missing, as for another machine, the program is left
# out, and `shstk push` says so.

PUSH_SRC	:= $(sort $(wildcard tools/push/send/*.c))
PUSH_OBJ	:= $(PUSH_SRC:tools/%.c=$(B)/tools/%.o)
HAS_CURL	:= $(shell echo '\#include <curl/curl.h>' | $(CC) $(OPT) -E - >/dev/null 2>&1 && echo yes)

$(PUSH_OBJ): TOOL_CFLAGS += -I$(SYMBOL_GEN)
$(PUSH_OBJ): | $(SYMBOL_PROTO_H)

$(B)/shstk-push: $(PUSH_OBJ) $(B)/tools/push/spool.o $(B)/tools/push/base64.o \
		$(B)/symbol/native/otlp.pb-c.o \
		$(B)/symbol/native/otlp_resource.o
	$(call say,LD,$@)$(call link_program,$^ -lcurl -lprotobuf-c -lz)

ifneq ($(HAS_CURL),)
TOOL_PROGRAMS	+= $(B)/shstk-push
endif
