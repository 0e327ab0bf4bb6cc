/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_json.h"

#include "base/cleanup.h"
#include "base/mem.h"

char *kube_json_class(const char *name, const char *provisioner, const char *parameters)
{
	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
			  "\"provisioner\":\"%s\",\"parameters\":%s,"
			  "\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
		name, provisioner, parameters);
}

char *kube_json_claim(const char *name, const char *class_name, const char *node, const char *volume)
{
	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid-%s\","
			  "\"resourceVersion\":\"5\",\"annotations\":{%s%s%s}},"
			  "\"spec\":{\"storageClassName\":\"%s\",\"volumeMode\":\"Filesystem\",%s%s%s"
			  "\"resources\":{\"requests\":{\"storage\":\"4Gi\"}}},"
			  "\"status\":{\"phase\":\"%s\"}}",
		name, name, node ? "\"volume.kubernetes.io/selected-node\":\"" : "", node ? node : "",
		node ? "\"" : "", class_name, volume ? "\"volumeName\":\"" : "", volume ? volume : "",
		volume ? "\"," : "", volume ? "Bound" : "Pending");
}

char *kube_json_clone(const char *name, const char *class_name, const char *source)
{
	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"uid-%s\","
			  "\"resourceVersion\":\"5\"},\"spec\":{\"storageClassName\":\"%s\","
			  "\"volumeMode\":\"Filesystem\",\"resources\":{\"requests\":{\"storage\":\"4Gi\"}},"
			  "\"dataSource\":{\"kind\":\"PersistentVolumeClaim\",\"name\":\"%s\"},"
			  "\"dataSourceRef\":{\"kind\":\"PersistentVolumeClaim\",\"name\":\"%s\"}},"
			  "\"status\":{\"phase\":\"Pending\"}}",
		name, name, class_name, source, source);
}

char *kube_json_node(const char *name, const char *label, const char *value)
{
	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\","
			  "\"labels\":{\"%s\":\"%s\"}}}",
		name, label, value);
}

char *kube_json_csi_node(const char *name, const char *driver)
{
	CLEANUP(free_charp)
	char *drivers =
		driver ? x_asprintf("{\"name\":\"%s\",\"nodeID\":\"%s\",\"topologyKeys\":[]}", driver, name)
		       : x_strdup("");

	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
			  "\"spec\":{\"drivers\":[%s]}}",
		name, drivers);
}

char *kube_json_volume(const char *name, const char *driver, const char *handle, const char *node)
{
	return x_asprintf("{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"1\"},"
			  "\"spec\":{\"csi\":{\"driver\":\"%s\",\"volumeHandle\":\"%s\"},"
			  "\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":["
			  "{\"key\":\"pmem/node\",\"operator\":\"In\",\"values\":[\"%s\"]}]}]}}}}",
		name, driver, handle, node);
}
