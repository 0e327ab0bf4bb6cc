/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics_process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/prometheus.h"
#include "os/file.h"

static void add(struct buf *out, const char *name, enum prometheus_type type, const char *help, double value)
{
	prometheus_family(out, name, type, help);
	prometheus_sample(out, name, NULL, value);
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / (double)NS_PER_S;
}

/* Takes the number off the beginning of *@text. */
static int take_number(char **text, uint64_t *ret, struct error **err)
{
	char *end = *text + strcspn(*text, " \n");
	char *next = end + (*end ? 1 : 0);

	*end = '\0';
	if (parse_u64(*text, ret, err) < 0)
		return -1;
	*text = next;
	return 0;
}

/* proc(5): the first two numbers of statm are the pages of the address space, and those in memory */
static int read_pages(uint64_t *ret_size, uint64_t *ret_resident, struct error **err)
{
	CLEANUP(buf_done) struct buf statm = BUF_INIT(256);
	char *text;

	if (file_read(AT_FDCWD, "/proc/self/statm", &statm, err) < 0)
		return -1;
	buf_addc(&statm, '\n');
	text = (char *)statm.data;
	if (take_number(&text, ret_size, err) < 0 || take_number(&text, ret_resident, err) < 0)
		return err_wrap(err, "/proc/self/statm");
	return 0;
}

static void add_memory(struct buf *out, const struct process_sample *sample)
{
	if (!sample->has_pages)
		return;
	add(out, "process_virtual_memory_bytes", PROMETHEUS_GAUGE, "Virtual memory size in bytes.",
		(double)sample->virtual_bytes);
	add(out, "process_resident_memory_bytes", PROMETHEUS_GAUGE, "Resident memory size in bytes.",
		(double)sample->resident_bytes);
}

/* Return: how many are open, or -1. */
static long count_descriptors(void)
{
	CLEANUP(dir_closep) DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	long n = -1; /* not the one that reads */

	while (dir && (e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	return n;
}

void process_sample_read(struct process_sample *ret)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t resident = 0;
	uint64_t size = 0;

	*ret = (struct process_sample){.descriptors = count_descriptors()};
	if (read_pages(&size, &resident, &err) < 0) {
		log_debug("no memory metrics, ignoring", F_ERR(err));
		return;
	}
	ret->has_pages = true;
	ret->virtual_bytes = size * page_bytes;
	ret->resident_bytes = resident * page_bytes;
}

static void add_descriptors(struct buf *out, const struct process_sample *sample)
{
	struct rlimit limit;

	if (sample->descriptors >= 0)
		add(out, "process_open_fds", PROMETHEUS_GAUGE, "Number of open file descriptors.",
			(double)sample->descriptors);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		add(out, "process_max_fds", PROMETHEUS_GAUGE, "Maximum number of open file descriptors.",
			(double)limit.rlim_cur);
}

void metrics_process(struct buf *out, double started, const struct process_sample *sample)
{
	add(out, "process_cpu_seconds_total", PROMETHEUS_COUNTER,
		"Total user and system CPU time spent in seconds.", cpu_seconds());
	add_memory(out, sample);
	add_descriptors(out, sample);
	add(out, "process_start_time_seconds", PROMETHEUS_GAUGE,
		"Start time of the process since unix epoch in seconds.", started);
}
