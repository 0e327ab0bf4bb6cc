/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/csi_node.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/str.h"
#include "csi/csi_groups.h"
#include "fuzz/fuzz.h"
#include "os/file.h"
#include "os/paths.h"

#define STATE_PATH   CONFINED_DIR "/state"
#define NODE_ID      "node-1"
#define REGION_BYTES (1ull << 30)
#define UNIT_BYTES   (4ull << 20)

static void make_pods(void)
{
	int rv = mkdir(CSI_NODE_PODS, 0755);

	assert(rv == 0);
	rv = mkdir(CSI_NODE_PODS "/dir", 0755);
	assert(rv == 0);
	int fd = open(CSI_NODE_PODS "/file", O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert(fd >= 0);
	close(fd);
	rv = symlink("/", CSI_NODE_PODS "/link");
	assert(rv == 0);
}

static void remove_pods(void)
{
	rmdir(CSI_NODE_PODS "/dir");
	unlink(CSI_NODE_PODS "/file");
	unlink(CSI_NODE_PODS "/link");
	int rv = rmdir(CSI_NODE_PODS);
	assert(rv == 0);
}

static void remove_state(void)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;
	struct error *err = NULL;

	int rv = dir_open(STATE_PATH, /* create= */ false, 0, &dir_fd, &err);
	assert(rv == 0);
	rv = dir_list(dir_fd, &names, &err);
	assert(rv == 0);
	for (size_t i = 0; names && names[i]; i++)
		unlinkat(dir_fd, names[i], 0);
	rv = rmdir(STATE_PATH);
	assert(rv == 0);
}

static void start(struct csi_node *n)
{
	const struct volumes_config config = {.node_id = NODE_ID,
		.state_path = STATE_PATH,
		.devices = n->devices,
		.roots = n->roots,
		.erase_in_call = true};
	struct error *err = NULL;

	n->csi.volumes = volumes_new(&config);
	int rv = volumes_start(n->csi.volumes, &err);
	assert(rv == 0);
}

void csi_node_open(struct csi_node *n)
{
	const struct device_fake_config fake = {
		.n_regions = 2, .region_bytes = REGION_BYTES, .unit_bytes = UNIT_BYTES};
	char pods[] = CSI_NODE_PODS;
	char *roots[] = {pods, NULL};
	struct error *err = NULL;

	make_pods();
	*n = (struct csi_node){
		.csi = {.driver_name = "pmem-csi.intel.com", .version = "1.2.3", .node_id = NODE_ID}};
	int rv = device_open_fake(&fake, &n->devices, &err);
	assert(rv == 0);
	rv = path_roots_new(roots, &n->roots, &err);
	assert(rv == 0);
	start(n);
}

void csi_node_restart(struct csi_node *n)
{
	volumes_free(n->csi.volumes);
	start(n);
}

void csi_node_close(struct csi_node *n)
{
	volumes_free(n->csi.volumes);
	path_roots_free(n->roots);
	device_close(n->devices);
	remove_state();
	remove_pods();
}

const struct grpc_method *csi_node_method(struct csi_node *n, size_t i, void **ret_self)
{
	const struct grpc_service services[] = {csi_identity_service(&n->csi),
		csi_controller_service(&n->csi), csi_group_service(&n->csi), csi_node_service(&n->csi)};

	for (size_t s = 0; s < ARRAY_SIZE(services); s++) {
		for (const struct grpc_method *m = services[s].methods; m->path; m++) {
			if (i-- > 0)
				continue;
			*ret_self = services[s].self;
			return m;
		}
	}
	return NULL;
}
