/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixture.h - the volumes of a node over the fake device manager, with what can go wrong below them.
 *
 * Each test runs in a mount namespace of its own, in a folder under /tmp that is emptied before the next one.
 * The main program clears away what a failed test left: loop devices outlive processes.
 */
#pragma once

#include <stdatomic.h>

#include "pmem/device/device.h"
#include "unit/unit.h"
#include "volume/state.h"
#include "volume/volumes.h"

#define MIB(n)       ((uint64_t)(n) << 20)
#define UNIT_BYTES   MIB(4)
#define REGION_BYTES MIB(3072)
#define N_POOLS      2
#define NODE_ID      "node-1"
#define SKIP_STATUS  77
/* An ID as the Go driver makes it: only in such a form may a device without a record be ours. */
#define MINTED_ID(prefix) prefix "-0123456789abcdef0123456789abcdef0123456789abcdef01234567"

/* Faults of the device manager that the volumes see, which otherwise acts as the fake; 0 and NULL: no fault.
 */
struct faults {
	enum err_code list;
	enum err_code create;
	enum err_code destroy;
	enum err_code activate;
	enum err_code grow;
	enum err_code media_errors;
	const char *unlisted; /* id: media_errors concerns only this device; NULL: all */
	bool (*creates_if)(const struct device_spec *spec); /* NULL: all fail; else those fail */
	unsigned creates;                                   /* so many fail, then no more; 0: all */
	bool after;                           /* create, grow and destroy fail after they have done it */
	const char *moved_path;               /* all devices are listed at it */
	bool inactive;                        /* no device is active until activate succeeds */
	bool raw;                             /* no device is what it was made as */
	const char *absent_pool;              /* uuid: not listed, nor its devices */
	const char *incomplete_pool;          /* uuid: its devices are not listed */
	bool no_slots;                        /* all label slots are in use, in every pool */
	const char *twin;                     /* id: a further device of that name is listed, in pool 0 */
	void (*in_list)(void);                /* called before devices are listed; from any thread */
	void (*in_create)(void);              /* called before the device is made */
	void (*in_grow)(void);                /* called before the device grows */
	void (*in_destroy)(void);             /* called before the device is destroyed; from any thread */
	void (*in_activate)(void);            /* called before devices are activated */
	void (*in_media_errors)(void);        /* called before media errors are found */
	void (*made)(const struct device *d); /* called with what was made */
};

struct fixture {
	struct device_manager *fake;
	struct device_manager devices; /* what the volumes see */
	struct device_ops ops;
	struct faults faults;
	bool growth_is_zeroed; /* the last growth was asked to zero what the device gains */
	/* any thread may call */
	atomic_uint n_lists;
	atomic_uint n_creates;
	atomic_uint n_destroys;
	atomic_uint n_changes; /* that the volumes reported */
	struct path_roots *roots;
	/* for the next fixture_open() */
	bool in_background; /* deleted volumes are erased by threads, not by the caller that deletes them */
	uint64_t erase_bytes_per_s;
	uint64_t copy_bytes_per_s;
	struct inline_limits inline_limits;
	int mkfs_timeout_ms;
	const struct volume_pods *pods;
	const char *direct_volumes_dir;
	const struct volume_guests *guests;
	void (*done)(void); /* called before the tear-down; may be NULL */
	struct volumes *v;
	char pools[N_POOLS][64]; /* uuids */
};

extern struct fixture fx;

/** fixture_in_memory() - the folder is not on a disk, for tests that make thousands of changes durable.
 * Called by main() before anything else. */
void fixture_in_memory(void);

/** fixture_memory() - set-up: devices without nodes, volumes started. */
void fixture_memory(void);

/** fixture_folder() - set-up: loop devices that survive a restart, volumes started. */
void fixture_folder(void);

/** fixture_done() - tear-down after either. */
void fixture_done(void);

/** fixture_stop() and fixture_open() - end the volumes as a crash does; open the state again, without
 * starting. */
void fixture_stop(void);
void fixture_open(void);

/** fixture_restart() - stop, open and start. */
void fixture_restart(void);

/** fixture_await_erased() - wait until no volume is left to erase. */
void fixture_await_erased(void);

/** fixture_path() - @name in the test's folder. Return: caller frees. */
char *fixture_path(const char *name);

/** fixture_write() and fixture_exists() - a file of the state folder. */
void fixture_write(const char *name, const char *text);
bool fixture_exists(const char *name);

/** fixture_read() - text of a file of the state folder. Return: caller frees. */
char *fixture_read(const char *name);

/** fixture_n_files() - volume files in the state folder. */
size_t fixture_n_files(void);

/** fixture_request() - ext4, no limit, no parameters. */
struct volume_request fixture_request(const char *name, uint64_t required_bytes);

/** fixture_create() - make a volume that must succeed. Return: volume_info_free(). */
struct volume_info *fixture_create(const char *name, uint64_t required_bytes);

/** fixture_make() - fixture_create() for its effect only. */
void fixture_make(const char *name, uint64_t required_bytes);

/** fixture_device() - the fake's device, whatever the faults hide. Return: device_free(), or NULL. */
struct device *fixture_device(const char *id);

/** fixture_add_device() - a device that no volume knows, in pool number @pool. Return: device_free(). */
struct device *fixture_add_device(const char *id, size_t pool, const char *identity, uint64_t size_bytes);

/** fixture_make_device() - fixture_add_device() for its effect only. */
void fixture_make_device(const char *id, size_t pool, const char *identity, uint64_t size_bytes);

/** fixture_n_devices() - how many the fake has. */
size_t fixture_n_devices(void);

/** fixture_pool() - the fake's pool number @pool; without its strings. */
struct device_pool fixture_pool(size_t pool);

/** fixture_case() - where tests between @setup and fixture_done() are added. Return: NULL when this host
 * cannot. */
TCase *fixture_case(const char *name, void (*setup)(void));

/** fixture_more_cases() - after fixture_case(): a further place, for tests with another @setup. */
TCase *fixture_more_cases(const char *name, void (*setup)(void));

/** fixture_finish() - run them and clear away what they left. Return: exit status. */
int fixture_finish(void);

/** fixture_run() - run @n tests between @setup and fixture_done(). Return: exit status; SKIP_STATUS when this
 * host cannot. */
int fixture_run(const char *name, void (*setup)(void), const TTest *const *tests, size_t n);

#define FIXTURE_MAIN(name, setup, ...)                                                                       \
	int main(void)                                                                                       \
	{                                                                                                    \
		const TTest *const tests[] = {__VA_ARGS__};                                                  \
		return fixture_run((name), (setup), tests, ARRAY_SIZE(tests));                               \
	}
