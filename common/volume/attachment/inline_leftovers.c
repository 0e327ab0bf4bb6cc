/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/inline_leftovers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/mount_table.h"
#include "os/paths.h"
#include "volume/state.h"

#define LEFT_OVER_NS (600 * NS_PER_S)
/* pkg/kubelet/config/defaults.go and pkg/volume/csi/csi_plugin.go */
#define PODS_NAME "/pods"
#define IN_POD    "/volumes/kubernetes.io~csi/"

/* @target: as recorded. @ret_pods: path of the folder of all pods; @ret_pod: name of the one in it; caller
 * frees. Return: whether it is in kubelet's layout. */
static bool split(const char *target, char **ret_pods, char **ret_pod)
{
	const char *end = strstr(target, IN_POD);
	CLEANUP(free_charp) char *folder = end ? x_strndup(target, (size_t)(end - target)) : NULL;
	char *slash = folder ? strrchr(folder, '/') : NULL;

	if (!slash || !slash[1])
		return false;
	*slash = '\0';
	if (!str_ends(folder, PODS_NAME))
		return false;
	*ret_pod = x_strdup(slash + 1);
	*ret_pods = TAKE_PTR(folder);
	return true;
}

static bool pod_is_gone(const char *target)
{
	CLEANUP(free_charp) char *pods = NULL;
	CLEANUP(free_charp) char *pod = NULL;
	CLEANUP(free_charp) char *another = NULL;
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(fd_closep) int path_fd = -1;
	struct stat st;

	if (!split(target, &pods, &pod) || path_open_canonical(pods, &path_fd, &ignored) < 0)
		return false;
	CLEANUP(fd_closep) int fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* kubelet, whose folder this is, runs other pods, of which the driver is one */
	if (fd < 0 || dir_first(fd, &another, &ignored) < 0 || !another)
		return false;
	return fstatat(fd, pod, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

bool inline_is_left_over(const struct volume_record *r, const struct mount_table *mounts)
{
	if (r->phase != PHASE_READY || !volume_record_is_inline(r) || !r->targets)
		return false;
	for (size_t i = 0; r->targets[i]; i++) {
		if (mount_table_at(mounts, r->targets[i]) || !pod_is_gone(r->targets[i]))
			return false;
	}
	return r->targets[0] != NULL;
}

struct inline_leftover {
	char *id;
	uint64_t since_ns;
};

void inline_leftovers_done(struct inline_leftovers *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->list[i].id);
	free(l->list);
	*l = (struct inline_leftovers){0};
}

static void forget(struct inline_leftovers *l, size_t at)
{
	free(l->list[at].id);
	l->list[at] = l->list[--l->n];
}

bool inline_leftovers_look(struct inline_leftovers *l, const char *id, bool is_left_over, uint64_t now_ns)
{
	for (size_t i = 0; i < l->n; i++) {
		if (!str_eq(l->list[i].id, id))
			continue;
		if (!is_left_over)
			forget(l, i);
		return is_left_over && now_ns - l->list[i].since_ns >= LEFT_OVER_NS;
	}
	if (!is_left_over)
		return false;
	l->list = x_realloc(l->list, l->n + 1, sizeof(*l->list));
	l->list[l->n++] = (struct inline_leftover){.id = x_strdup(id), .since_ns = now_ns};
	return false;
}
