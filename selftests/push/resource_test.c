// SPDX-License-Identifier: GPL-2.0-or-later
/* resource_test.c - tests what names of control groups say: services and pods of several managers. */
#include <stddef.h>

#include "libshstk/symbol/otlp_resource.h"
#include "kselftest_harness.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "1a2b3c4d-0000-4111-8222-abcdefabcdef"
#define POD_ "1a2b3c4d_0000_4111_8222_abcdefabcdef"

static const struct {
	const char *cgroup, *unit, *pod;
} groups[] = {
	{ "/system.slice/nginx.service", "nginx", "" },
	{ "/system.slice/system-getty.slice/getty@tty1.service", "getty", "" },
	{ "/system.slice/docker.service/payload", "docker", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/app-editor.service",
	  "app-editor", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "", "" },
	{ "/user.slice/user-1000.slice/session-2.scope", "", "" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
	  ".slice/cri-containerd-" ID ".scope",
	  "", POD },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" ID ".scope", "", POD },
	{ "/kubepods/besteffort/pod" POD "/" ID, "", POD },
	{ "/machine.slice/libpod-" ID ".scope/container", "", "" },
	{ "/docker/" ID, "", "" },
	{ "/system.slice/shop.service/libpod-payload-" ID, "shop", "" },
	{ "/machine.slice/machine-shop.scope/payload/init.scope", "shop", "" },
	{ "/machine.slice/machine-our\\x2dshop.scope/payload", "our-shop", "" },
	{ "/machine.slice/machine-shop.scope/payload/system.slice/nginx.service", "nginx", "" },
	{ "/machine.slice/systemd-nspawn@shop.service/payload", "shop", "" },
	{ "/lxc.payload.shop/init.scope", "shop", "" },
	{ "/lxc.payload./machine-.scope/.service/lxc.monitor.shop", "", "" },
	{ "/", "", "" },
	{ "", "", "" },
	{ "//.service//@.service", "", "" },
	{ "/podium/pod" POD "0", "", "" },
	{ "/kubepods/pod1a2b3c4d-0000", "", "" },
	{ "/pod", "", "" },
};

TEST(services_and_pods_are_found_in_names_of_control_groups)
{
	char unit[SHSTK_RESOURCE_TEXT], pod[SHSTK_RESOURCE_TEXT];

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
		EXPECT_EQ(*groups[i].unit != 0, shstk_resource_unit(groups[i].cgroup, unit));
		EXPECT_STREQ(groups[i].unit, unit);
		EXPECT_EQ(*groups[i].pod != 0, shstk_resource_pod(groups[i].cgroup, pod));
		EXPECT_STREQ(groups[i].pod, pod);
	}
}

TEST(only_podmans_containers_in_a_unit_of_their_own_are_that_unit)
{
	EXPECT_TRUE(shstk_resource_is_split("/system.slice/shop.service/libpod-payload-" ID));
	EXPECT_FALSE(shstk_resource_is_split("/system.slice/docker.service/docker/" ID));
	EXPECT_FALSE(shstk_resource_is_split("/machine.slice/libpod-" ID ".scope/container"));
}

TEST(a_name_that_is_too_long_is_no_service)
{
	char unit[SHSTK_RESOURCE_TEXT], group[2 * SHSTK_RESOURCE_TEXT];

	memset(group, 'x', sizeof(group));
	group[0] = '/';
	strcpy(group + sizeof(group) - sizeof(".service"), ".service");
	EXPECT_FALSE(shstk_resource_unit(group, unit));
	EXPECT_STREQ("", unit);
}

TEST_HARNESS_MAIN
