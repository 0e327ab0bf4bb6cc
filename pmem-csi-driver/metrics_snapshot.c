/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics_snapshot.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

struct sampler {
	struct loop *loop;
	struct workers *threads;
	const char *regions_path;
	struct metrics_snapshot last;
	struct metrics_snapshot next; /* the thread's while @running */
	bool running;
};

static int add_region(int dir, const char *name, uint64_t *sum_bytes, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/size", name);
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	uint64_t size;

	if (file_read(dir, path, &text, err) < 0)
		return -1;
	if (str_ends(buf_str(&text), "\n"))
		text.data[text.len - 1] = '\0';
	if (parse_u64(buf_str(&text), &size, err) < 0)
		return err_wrap(err, "%s", path);
	*sum_bytes += size;
	return 0;
}

int regions_bytes_read(const char *folder, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int dir = -1;
	uint64_t sum = 0;

	if (dir_open(folder, /* create= */ false, 0, &dir, err) < 0 || dir_list(dir, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < strv_len(names); i++) {
		if (str_starts(names[i], "region") && add_region(dir, names[i], &sum, err) < 0)
			return -1;
	}
	*ret_bytes = sum;
	return 0;
}

static void sample(void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct sampler *s = user;

	process_sample_read(&s->next.process);
	s->next.regions_bytes = 0;
	if (s->regions_path && regions_bytes_read(s->regions_path, &s->next.regions_bytes, &err) < 0)
		log_debug("sizes of regions are not known, ignoring", F_ERR(err));
}

static void take_sample(void *user)
{
	struct sampler *s = user;

	s->last = s->next;
	s->running = false;
}

static void post_sample(void *user)
{
	struct sampler *s = user;

	loop_post(s->loop, take_sample, s);
}

static void start(struct sampler *s)
{
	if (!s->running)
		s->running = workers_run(s->threads, sample, post_sample, s);
}

struct sampler *sampler_new(struct loop *loop, struct workers *threads, const char *regions_path)
{
	struct sampler *s = x_calloc(1, sizeof(*s));

	s->loop = loop;
	s->threads = threads;
	s->regions_path = regions_path;
	s->last.process.descriptors = -1;
	start(s);
	return s;
}

void sampler_free(struct sampler *s)
{
	free(s);
}

const struct metrics_snapshot *sampler_get(struct sampler *s)
{
	start(s);
	return &s->last;
}
