/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <time.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "cluster_check/cluster_reader.h"
#include "cluster_check/cluster_report.h"
#include "commands.h"
#include "net/core/handshakes.h"
#include "os/process.h"

static const char help[] =
	"usage: pmem-csi-driver cluster check [flags]\n"
	"\n"
	"Compares PersistentVolumes and claims with the driver's PmemVolumes, Nodes with its PmemNodes, and\n"
	"CSIStorageCapacities with StorageClasses and PmemNodes. It examines no node, changes nothing, and lists every\n"
	"inconsistency with its reason, its object, and what can be done about it. If the cluster has no StorageClass,\n"
	"no PmemNode or no CSIStorageCapacity of the driver, or no driver on a node that is chosen for it, that is an\n"
	"inconsistency, too.\n"
	"\n"
	"  check  list inconsistencies\n"
	"\n"
	"The API server and the account are those of the kubeconfig that $KUBECONFIG names, or of the pod:\n"
	"`kubectl -n pmem-csi exec deploy/pmem-csi-controller -- pmem-csi-driver cluster check`. An inconsistency is listed\n"
	"if it is still there after five seconds, because volumes are created and deleted meanwhile.\n"
	"\n"
	"Exit status: 0 consistent; 1 inconsistencies found; 2 wrong usage, or not all objects could be read.\n";

/* The status of a volume follows its record within seconds, and a PmemNode its node (duties/). */
#define SETTLE_S 5

/* The exit status if the objects cannot be read. It is that of wrong usage, because the state of the cluster
 * is unknown in both cases. */
#define CLUSTER_UNKNOWN COMMAND_USAGE

/* The labels of nodes that manifests/ selects: set by hand, or by Node Feature Discovery. */
#define MANIFESTS_SELECTOR                                                                                   \
	"[{\"storage\":\"pmem\"},{\"feature.node.kubernetes.io/memory-nv.dax\":\"true\",\"storage\":null}]"

struct cluster_args {
	struct options o;
	const char *output;
	const char *node_selector; /* JSON, as the controller's */
	char **node_labels;        /* label selectors of Kubernetes, strv: "storage=pmem" */
};

/* The client of the API server and the objects that it needs, in the order in which they are opened. */
struct connection {
	struct kube_config *kube;
	struct loop *loop;
	struct handshakes *handshakes;
	struct kube_client *client;
};

static void connection_done(struct connection *c)
{
	kube_client_free(c->client);
	handshakes_free(c->handshakes);
	loop_free(c->loop);
	kube_config_free(c->kube);
}

static int connection_open(const struct options *o, struct connection *c, struct error **err)
{
	if (kube_config_find(&c->kube, err) < 0)
		return err_wrap(err, "no API server: set $KUBECONFIG, or run this in the controller's pod");
	if (loop_new(&c->loop, err) < 0)
		return -1;
	c->handshakes = handshakes_new(c->loop);
	const struct kube_client_config config = {.loop = c->loop,
		.handshakes = c->handshakes,
		.kube = c->kube,
		.qps = o->kube_qps,
		.burst = o->kube_burst};
	return kube_client_new(&config, &c->client, err);
}

static int look(const struct cluster_args *a, struct kube_client *client, struct cluster_lists *lists,
	struct cluster_findings *findings, struct error **err)
{
	const struct cluster_scope scope = {.driver_name = a->o.driver_name,
		.namespace = a->o.namespace ? a->o.namespace : kube_client_namespace(client),
		.now_s = (int64_t)time(NULL),
		.node_labels = a->node_labels};

	if (cluster_read(client, &scope, lists, err) < 0)
		return -1;
	cluster_compare(lists, findings);
	return 0;
}

static int look_again(const struct cluster_args *a, struct kube_client *client, struct cluster_lists *lists,
	struct cluster_findings *findings, struct error **err)
{
	CLEANUP(cluster_findings_done) struct cluster_findings before = *findings;
	const struct timespec settle = {.tv_sec = SETTLE_S};

	*findings = (struct cluster_findings){0};
	cluster_lists_done(lists);
	(void)nanosleep(&settle, NULL);
	if (look(a, client, lists, findings, err) < 0)
		return -1;
	cluster_findings_keep(findings, &before);
	return 0;
}

static int check(const struct cluster_args *a, struct error **err)
{
	CLEANUP(connection_done) struct connection c = {0};
	CLEANUP(cluster_lists_done) struct cluster_lists lists = {0};
	CLEANUP(cluster_findings_done) struct cluster_findings findings = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);
	int status;

	if (connection_open(&a->o, &c, err) < 0 || look(a, c.client, &lists, &findings, err) < 0)
		return CLUSTER_UNKNOWN;
	if (findings.n > 0 && look_again(a, c.client, &lists, &findings, err) < 0)
		return CLUSTER_UNKNOWN;
	if (str_eq(a->output, "json"))
		cluster_report_json(&lists, &findings, &out);
	else
		cluster_report_text(&lists, &findings, &out);
	status = command_print("cluster check", &out, findings.n > 0 ? COMMAND_MISMATCH : COMMAND_OK);
	return status == COMMAND_BLIND ? CLUSTER_UNKNOWN : status;
}

static int make_node_labels(struct cluster_args *a, struct error **err)
{
	struct node_terms *terms = &a->o.node_selector;

	if (node_terms_parse(a->node_selector, terms, err) < 0)
		return err_wrap(err, "flag -nodeSelector");
	for (size_t i = 0; i < terms->n; i++) {
		CLEANUP(free_charp) char *selector = node_term_selector(&terms->terms[i]);

		if (!*selector)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"-nodeSelector \"%s\" has an object without labels", a->node_selector);
		strv_add(&a->node_labels, selector);
	}
	if (!a->node_labels)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-nodeSelector \"%s\" names no label", a->node_selector);
	return 0;
}

static int check_usage(const struct cluster_args *a, char *const *rest, struct error **err)
{
	static const char *const commands[] = {"check", NULL};

	if (!rest[0])
		return err_set(
			err, ERR_INVALID_ARGUMENT, "a command is needed: pmem-csi-driver cluster check");
	if (!str_eq(rest[0], "check"))
		return args_refuse_command(rest[0], commands, err);
	if (rest[1])
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", rest[1]);
	if (a->o.namespace && !name_is_object(a->o.namespace, NAME_NAMESPACE_MAX))
		return err_set(err, ERR_INVALID_ARGUMENT, "-namespace \"%s\" is not the name of a namespace",
			a->o.namespace);
	if (a->o.kube_qps == 0 || a->o.kube_burst == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "-kube-api-qps and -kube-api-burst must not be 0");
	if (name_check_driver(a->o.driver_name, err) < 0)
		return -1;
	return program_check_format("-o", a->output, err);
}

static int run(struct cluster_args *a, int argc, char **argv, struct error **err)
{
	const struct opt table[] = {
		{"o", OPT_STR, &a->output, "FORMAT", "text or json"},
		{"drivername", OPT_STR, &a->o.driver_name, "NAME", "as for the controller"},
		{"namespace", OPT_STR, &a->o.namespace, "NAME",
			"as for the controller: namespace of the CSIStorageCapacity objects "
			"(default: that of the pod or of the kubeconfig)"},
		{"nodeSelector", OPT_STR, &a->node_selector, "JSON",
			"as for the controller: labels of the nodes on which the driver is to run "
			"(default: " MANIFESTS_SELECTOR ")"},
		{"kube-api-qps", OPT_U32, &a->o.kube_qps, "N", "as for the controller"},
		{"kube-api-burst", OPT_U32, &a->o.kube_burst, "N", "as for the controller"},
		{"v", OPT_U32, &a->o.flags.verbosity, "N", "log verbosity; 5 and above shows debug messages"},
		{"help", OPT_BOOL, &a->o.flags.show_help, NULL, "print this help and exit"},
		{0},
	};
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(free_charp) char *text = args_help(help, table);

	if (args_parse(table, argc, argv, &args, err) < 0)
		return COMMAND_USAGE;
	if (a->o.flags.show_help)
		return process_print(text, err) < 0 ? CLUSTER_UNKNOWN : COMMAND_OK;
	if (check_usage(a, args.rest, err) < 0 || make_node_labels(a, err) < 0)
		return COMMAND_USAGE;
	log_init("pmem-csi-driver", LOG_TEXT, a->o.flags.verbosity);
	return check(a, err);
}

int cmd_cluster(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct cluster_args a = {
		.o = options_default(), .output = "text", .node_selector = MANIFESTS_SELECTOR};
	int status = run(&a, argc, argv, &err);

	strv_free(a.node_labels);
	options_done(&a.o);
	return err ? command_fail("cluster", err, status) : status;
}
