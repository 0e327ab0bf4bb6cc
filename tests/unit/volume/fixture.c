/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/volume/fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/loopdev.h"
#include "os/paths.h"

#define TIMEOUT_S    300
#define FILE_MAX     65536
#define WALK_FDS     16
#define IMAGE_SUFFIX ".image"

struct fixture fx;

static char base[32] = "/tmp/pmem-volume-XXXXXX";

void fixture_in_memory(void)
{
	if (access("/dev/shm", W_OK) == 0)
		snprintf(base, sizeof(base), "/dev/shm/pmem-volume-XXXXXX");
}

char *fixture_path(const char *name)
{
	return x_asprintf("%s/%s", base, name);
}

static int fault(enum err_code code, const char *what, struct error **err)
{
	return err_set(err, code, "%s fails as the test wants it", what);
}

static void drop_device(struct device_list *l, size_t at)
{
	free(l->devices[at].id);
	free(l->devices[at].pool);
	free(l->devices[at].identity);
	free(l->devices[at].path);
	l->n_devices--;
	memmove(&l->devices[at], &l->devices[at + 1], (l->n_devices - at) * sizeof(*l->devices));
}

static void hide_devices(struct device_list *l, const char *pool)
{
	for (size_t i = l->n_devices; i > 0; i--) {
		if (pool && str_eq(l->devices[i - 1].pool, pool))
			drop_device(l, i - 1);
	}
}

static void hide_pool(struct device_list *l, const char *uuid)
{
	for (size_t i = l->n_pools; i > 0; i--) {
		if (!uuid || !str_eq(l->pools[i - 1].uuid, uuid))
			continue;
		free(l->pools[i - 1].uuid);
		free(l->pools[i - 1].region);
		free(l->pools[i - 1].name);
		l->n_pools--;
		memmove(&l->pools[i - 1], &l->pools[i], (l->n_pools - i + 1) * sizeof(*l->pools));
	}
}

static void spoil_pools(struct device_list *l)
{
	hide_pool(l, fx.faults.absent_pool);
	for (size_t i = 0; i < l->n_pools; i++) {
		struct device_pool *p = &l->pools[i];

		if (str_eq(p->uuid, fx.faults.incomplete_pool))
			p->complete = false;
		if (fx.faults.no_slots) {
			p->used_up = DEVICE_NO_SLOT;
			p->capacity.available_bytes = 0;
			p->capacity.max_volume_bytes = 0;
			p->capacity.max_sector_volume_bytes = 0;
		}
	}
}

static void list_twin(struct device_list *l, const char *id)
{
	const struct device twin = {.id = (char *)(uintptr_t)id,
		.pool = fx.pools[0],
		.identity = (char[]){"twin"},
		.active = true};

	device_list_note(l, &twin, /* exists= */ true);
}

static int faulty_list(void *self, struct device_list **ret, struct error **err)
{
	(void)self;
	fx.n_lists++;
	if (fx.faults.in_list)
		fx.faults.in_list();
	if (fx.faults.list)
		return fault(fx.faults.list, "list", err);
	if (device_list_read(fx.fake, ret, err) < 0)
		return -1;
	if (fx.faults.twin)
		list_twin(*ret, fx.faults.twin);
	hide_devices(*ret, fx.faults.absent_pool);
	hide_devices(*ret, fx.faults.incomplete_pool);
	spoil_pools(*ret);
	for (size_t i = 0; fx.faults.raw && i < (*ret)->n_devices; i++)
		(*ret)->devices[i].raw = true;
	for (size_t i = 0; fx.faults.moved_path && i < (*ret)->n_devices; i++) {
		free((*ret)->devices[i].path);
		(*ret)->devices[i].path = x_strdup(fx.faults.moved_path);
	}
	for (size_t i = 0; fx.faults.inactive && i < (*ret)->n_devices; i++) {
		(*ret)->devices[i].active = false;
		free(TAKE_PTR((*ret)->devices[i].path));
	}
	return 0;
}

static struct device_list *faulty_latest_pools(void *self)
{
	struct device_list *l;

	(void)self;
	fx.n_lists++;
	if (fx.faults.in_list)
		fx.faults.in_list();
	if (fx.faults.list)
		return NULL;
	l = device_latest_pools(fx.fake);
	spoil_pools(l);
	return l;
}

static int faulty_confirm(void *self, const struct device *d, struct error **err)
{
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	if (faulty_list(self, &l, err) < 0)
		return -1;
	return device_list_confirm(l, d, err);
}

static int faulty_create(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	(void)self;
	fx.n_creates++;
	if (fx.faults.in_create)
		fx.faults.in_create();
	bool fails = fx.faults.create && (!fx.faults.creates_if || fx.faults.creates_if(spec)) &&
		     (fx.faults.creates == 0 || fx.n_creates <= fx.faults.creates);
	if (fails && !fx.faults.after)
		return fault(fx.faults.create, "create", err);
	if (device_create(fx.fake, spec, &d, err) < 0)
		return -1;
	if (fx.faults.made)
		fx.faults.made(d);
	if (fails)
		return fault(fx.faults.create, "create", err);
	*ret = TAKE_PTR(d);
	return 0;
}

static int faulty_destroy(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = exclusive_fd;

	(void)self;
	fx.n_destroys++;
	if (fx.faults.in_destroy)
		fx.faults.in_destroy();
	if (fx.faults.destroy && !fx.faults.after)
		return fault(fx.faults.destroy, "destroy", err);
	if (device_destroy(fx.fake, device, TAKE_FD(fd), err) < 0)
		return -1;
	return fx.faults.destroy ? fault(fx.faults.destroy, "destroy", err) : 0;
}

static int faulty_grow(
	void *self, const struct device_growth *growth, struct device **ret, struct error **err)
{
	(void)self;
	if (fx.faults.in_grow)
		fx.faults.in_grow();
	if (fx.faults.grow && !fx.faults.after)
		return err_set(err, fx.faults.grow, "injected");
	fx.growth_is_zeroed = growth->zero != NULL;
	if (device_grow(fx.fake, growth, ret, err) < 0)
		return -1;
	if (!fx.faults.grow)
		return 0;
	device_free(TAKE_PTR(*ret));
	return err_set(err, fx.faults.grow, "injected");
}

static int faulty_activate(void *self, const struct device_list *list, struct error **err)
{
	(void)self;
	if (fx.faults.in_activate)
		fx.faults.in_activate();
	if (fx.faults.activate)
		return fault(fx.faults.activate, "activate", err);
	fx.faults.inactive = false;
	for (size_t i = 0; i < list->n_devices; i++)
		ck_assert_str_ne(list->devices[i].id, "stranger");
	return device_activate(fx.fake, list, err);
}

static int faulty_media_errors(
	void *self, const struct device_list *list, struct media_errors *ret, struct error **err)
{
	(void)self;
	if (fx.faults.in_media_errors)
		fx.faults.in_media_errors();
	if (fx.fake->ops->media_errors(fx.fake->self, list, ret, err) < 0)
		return -1;
	if (!fx.faults.media_errors)
		return 0;
	for (size_t i = 0; i < list->n_devices; i++) {
		if (!fx.faults.unlisted || str_eq(list->devices[i].id, fx.faults.unlisted))
			ret[i] = (struct media_errors){.unknown = true};
	}
	return err_set(err, fx.faults.media_errors, "injected");
}

static void do_nothing(void *self)
{
	(void)self;
}

void fixture_stop(void)
{
	volumes_free(TAKE_PTR(fx.v));
}

static void note_change(void *user)
{
	(void)user;
	fx.n_changes++;
}

/* As the programs do when they start: what is mounted over a root later does not change what it stands for.
 */
static void open_roots(void)
{
	CLEANUP(free_charp) char *kubelet = fixture_path("kubelet");
	char *roots[] = {kubelet, NULL};
	struct error *err = NULL;

	path_roots_free(TAKE_PTR(fx.roots));
	ASSERT_OK(path_roots_new(roots, &fx.roots, &err));
}

void fixture_open(void)
{
	CLEANUP(free_charp) char *state = fixture_path("state");

	const struct volumes_config config = {.node_id = NODE_ID,
		.state_path = state,
		.devices = &fx.devices,
		.roots = fx.roots,
		.pods = fx.pods,
		.direct_volumes_dir = fx.direct_volumes_dir,
		.guests = fx.guests,
		.erase_bytes_per_s = fx.erase_bytes_per_s,
		.copy_bytes_per_s = fx.copy_bytes_per_s,
		.inline_limits = fx.inline_limits,
		.mkfs_timeout_ms = fx.mkfs_timeout_ms,
		.erase_in_call = !fx.in_background,
		.changed = note_change};

	fx.v = volumes_new(&config);
}

void fixture_restart(void)
{
	struct error *err = NULL;

	fixture_stop();
	open_roots();
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
}

void fixture_await_erased(void)
{
	struct volumes_overview o;

	do {
		sched_yield();
		volumes_overview(fx.v, &o);
	} while (o.n_erasing > 0 || o.erasures_running > 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	CLEANUP(error_freep) struct error *ignored = NULL;

	(void)st;
	(void)type;
	(void)ftw;
	if (str_ends(path, IMAGE_SUFFIX)) {
		CLEANUP(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && loop_detach(fd, &ignored) < 0)
			fprintf(stderr, "%s: %s\n", path, ignored->msg);
	}
	return remove(path);
}

/* Not in the parent's namespace: a failed test's mounts went with its own. */
static void remove_all(const char *path)
{
	nftw(path, remove_entry, WALK_FDS, FTW_DEPTH | FTW_PHYS);
}

static void open_devices(const char *folder)
{
	const struct device_fake_config config = {
		.path = folder, .n_regions = N_POOLS, .region_bytes = REGION_BYTES, .unit_bytes = UNIT_BYTES};
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_open_fake(&config, &fx.fake, &err));
	fx.ops = (struct device_ops){.mode = fx.fake->ops->mode,
		.list = faulty_list,
		.latest_pools = faulty_latest_pools,
		.confirm = faulty_confirm,
		.create = faulty_create,
		.grow = faulty_grow,
		.destroy = faulty_destroy,
		.activate = faulty_activate,
		.fit = fx.fake->ops->fit,
		.media_errors = faulty_media_errors,
		.tick = do_nothing,
		.close = do_nothing};
	fx.devices = (struct device_manager){.ops = &fx.ops};
	ASSERT_OK(device_list_read(fx.fake, &l, &err));
	for (size_t i = 0; i < N_POOLS; i++)
		snprintf(fx.pools[i], sizeof(fx.pools[i]), "%s", l->pools[i].uuid);
}

static void set_up(bool in_folder)
{
	CLEANUP(free_charp) char *fake = fixture_path("fake");
	CLEANUP(free_charp) char *kubelet = fixture_path("kubelet");
	struct error *err = NULL;

	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	remove_all(base);
	ck_assert_int_eq(mkdir(base, 0755), 0);
	ck_assert_int_eq(mkdir(kubelet, 0755), 0);
	open_devices(in_folder ? fake : NULL);
	open_roots();
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
}

void fixture_memory(void)
{
	set_up(/* in_folder= */ false);
}

void fixture_folder(void)
{
	set_up(/* in_folder= */ true);
}

void fixture_done(void)
{
	if (fx.done)
		fx.done();
	fixture_stop();
	path_roots_free(TAKE_PTR(fx.roots));
	device_close(fx.fake);
}

void fixture_write(const char *name, const char *text)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/state/%s", base, name);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

bool fixture_exists(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/state/%s", base, name);

	return access(path, F_OK) == 0;
}

char *fixture_read(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/state/%s", base, name);
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX);
	struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, path, &text, &err));
	return x_strdup(buf_str(&text));
}

size_t fixture_n_files(void)
{
	CLEANUP(free_charp) char *path = fixture_path("state");
	CLEANUP(fd_closep) int fd = -1;
	CLEANUP(strv_freep) char **names = NULL;
	struct error *err = NULL;
	size_t n = 0;

	ASSERT_OK(dir_open(path, /* create= */ false, 0, &fd, &err));
	ASSERT_OK(dir_list(fd, &names, &err));
	for (size_t i = 0; names[i]; i++)
		n += !str_eq(names[i], ".lock");
	return n;
}

struct volume_request fixture_request(const char *name, uint64_t required_bytes)
{
	static const struct strmap none;

	return (struct volume_request){
		.name = name, .required_bytes = required_bytes, .fs_type = "ext4", .parameters = &none};
}

struct volume_info *fixture_create(const char *name, uint64_t required_bytes)
{
	const struct volume_request q = fixture_request(name, required_bytes);
	struct volume_info *info = NULL;
	struct error *err = NULL;

	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	return info;
}

void fixture_make(const char *name, uint64_t required_bytes)
{
	volume_info_free(fixture_create(name, required_bytes));
}

static struct device_list *list_fake(void)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(fx.fake, &l, &err));
	return l;
}

struct device *fixture_device(const char *id)
{
	CLEANUP(device_list_freep) struct device_list *l = list_fake();
	const struct device *d = device_list_find(l, id);

	return d ? device_dup(d) : NULL;
}

struct device *fixture_add_device(const char *id, size_t pool, const char *identity, uint64_t size_bytes)
{
	const struct device_spec spec = {id, fx.pools[pool], identity, size_bytes, false};
	struct device *d = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_create(fx.fake, &spec, &d, &err));
	return d;
}

void fixture_make_device(const char *id, size_t pool, const char *identity, uint64_t size_bytes)
{
	device_free(fixture_add_device(id, pool, identity, size_bytes));
}

size_t fixture_n_devices(void)
{
	CLEANUP(device_list_freep) struct device_list *l = list_fake();

	return l->n_devices;
}

struct device_pool fixture_pool(size_t pool)
{
	CLEANUP(device_list_freep) struct device_list *l = list_fake();
	struct device_pool p = *device_list_pool(l, fx.pools[pool]);

	p.uuid = NULL;
	p.name = NULL;
	return p;
}

static Suite *suite;

TCase *fixture_more_cases(const char *name, void (*setup)(void))
{
	TCase *tcase = tcase_create(name);

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, fixture_done);
	tcase_set_timeout(tcase, TIMEOUT_S);
	return tcase;
}

TCase *fixture_case(const char *name, void (*setup)(void))
{
	if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0) {
		fprintf(stderr, "SKIP %s: needs root and loop devices\n", name);
		return NULL;
	}
	if (!mkdtemp(base))
		abort();
	suite = suite_create(name);
	return fixture_more_cases(name, setup);
}

int fixture_finish(void)
{
	int status = unit_runner_finish(srunner_create(suite));

	remove_all(base);
	return status;
}

int fixture_run(const char *name, void (*setup)(void), const TTest *const *tests, size_t n)
{
	TCase *tcase = fixture_case(name, setup);

	if (!tcase)
		return SKIP_STATUS;
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
	return fixture_finish();
}
