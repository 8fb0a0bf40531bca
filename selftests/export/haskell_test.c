// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * haskell_test.c - readable names of functions that GHC compiled: each code of a symbol, and symbols that
 * are none of Haskell. Prints KTAP.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/haskell.h"
#include "symbol/pool.h"

#define REPEATED 3000

static unsigned int number;
static bool failed;

/* Symbols, and the name of each; NULL: it is none of a Haskell function. */
static const char *const names[][2] = {
	{ "base_GHCziBase_map_info", "GHC.Base.map" },
	{ "Main_outer_info", "Main.outer" },
	{ "ZCMain_main_info", ":Main.main" },
	{ "Main_zdwouter_info", "Main.$wouter" },
	{ "containerszm0zi6zi7_DataziMapziInternal_zdwinsert_info", "Data.Map.Internal.$winsert" },
	{ "HUnitzm1zi6zi2zi0_TestziHUnitziBase_runTest_info", "Test.HUnit.Base.runTest" },
	{ "Main_go_r2Xk_info", "Main.go" },
	{ "ghczmprim_GHCziTypes_ZC_con_info", "GHC.Types.:" },
	{ "M_f_slow", "M.f" },
	{ "M_f_static_info", "M.f" },
	/* Each letter that has a code. */
	{ "M_ZLZRZMZNZCZZ_info", "M.()[]:Z" },
	{ "M_zzzazbzczdzezgzhzizl_info", "M.z&|^$=>#.<" },
	{ "M_zmznzpzqzrzszt_info", "M.-!+'\\/*" },
	{ "M_zuzv_info", "M._%" },
	{ "M_foozu1zq_info", "M.foo_1'" },
	/* Tuples, and characters by their numbers. */
	{ "GHCziTuple_Z0T_con_info", "GHC.Tuple.()" },
	{ "GHCziTuple_Z2T_con_info", "GHC.Tuple.(,)" },
	{ "GHCziTuple_Z5T_con_info", "GHC.Tuple.(,,,,)" },
	{ "GHCziPrim_Z1H_con_info", "GHC.Prim.(# #)" },
	{ "GHCziPrim_Z2H_con_info", "GHC.Prim.(#,#)" },
	{ "M_z03b1U_info", "M.\xce\xb1" },
	{ "M_z2237U_info", "M.\xe2\x88\xb7" },
	{ "M_z1d49eU_info", "M.\xf0\x9d\x92\x9e" },
	{ "z0c9Util_f_info", "\xc3\x89til.f" },
	{ "unit_Mz0e9Uthod_f_info", "M\xc3\xa9thod.f" },
	/* These are none. */
	{ "stg_ap_v_info", NULL },
	{ "stg_upd_frame_info", NULL },
	{ "Main_outer", NULL },
	{ "Main_info", NULL },
	{ "Main__info", NULL },
	{ "main_info", NULL },
	{ "_info", NULL },
	{ "", NULL },
	{ "get_user_info", NULL },
	{ "print_some_long_debug_info", NULL },
	{ "A_B_c_d_e_info", NULL },
	{ "Mainzi_f_info", NULL },
	{ "ziMain_f_info", NULL },
	{ "M_f.cold_info", NULL },
	{ "M_zy_info", NULL },
	{ "M_z_info", NULL },
	{ "M_Z_info", NULL },
	{ "M_ZZZ_info", NULL },
	{ "M_Z3_info", NULL },
	{ "M_Z3X_info", NULL },
	{ "M_Z65T_info", NULL },
	{ "M_Z99999999999999999999T_info", NULL },
	{ "M_z41_info", NULL },
	{ "M_z0aU_info", NULL },
	{ "M_z7fU_info", NULL },
	{ "M_z0d800U_info", NULL },
	{ "M_z110000U_info", NULL },
	{ "M_z000000041U_info", NULL },
	{ "M_z0U_info", NULL },
};

static void point(bool ok, const char *fact, const char *got)
{
	printf("%sok %u %s%s%s\n", ok ? "" : "not ", ++number, fact, got ? ": " : "",
	       got ? got : "");
	failed |= !ok;
}

static void check_names(struct shstk_pool *pool)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *got = shstk_haskell_name(pool, names[i][0]), *want = names[i][1];

		point(want ? got && !strcmp(got, want) : !got, names[i][0], got);
	}
}

/* A name has as many bytes as there is room for, or it is none. */
static void check_room(void)
{
	const size_t longest = strlen("GHC.Base.map");
	size_t len;

	for (size_t room = 0; room <= longest; room++) {
		char *text = malloc(room + 1);
		bool ok = text && shstk_haskell("base_GHCziBase_map_info", text, room, &len);

		point(ok == (room == longest), "a name needs room for all of it", NULL);
		free(text);
	}
}

/* 3000 tuples of 64 would be a name of 200,000 bytes. */
static void check_long(struct shstk_pool *pool)
{
	static char name[16 + 4 * REPEATED];
	char *to = stpcpy(name, "M_");

	for (int i = 0; i < REPEATED; i++)
		to = stpcpy(to, "Z64T");
	strcpy(to, "_info");
	point(!shstk_haskell_name(pool, name), "a name that is too long is none", NULL);
}

static void check_runtime(void)
{
	point(shstk_is_haskell_runtime("stg_upd_frame_info") &&
		      !shstk_is_haskell_runtime("stg_info") &&
		      !shstk_is_haskell_runtime("base_GHCziBase_map_info") &&
		      !shstk_is_haskell_runtime("stg_upd_frame"),
	      "symbols of the runtime begin with stg_ and end with _info", NULL);
}

int main(void)
{
	struct shstk_pool pool;

	shstk_pool_init(&pool);
	printf("KTAP version 1\n");
	check_names(&pool);
	check_room();
	check_long(&pool);
	check_runtime();
	shstk_pool_deinit(&pool);
	printf("1..%u\n", number);
	return failed;
}
