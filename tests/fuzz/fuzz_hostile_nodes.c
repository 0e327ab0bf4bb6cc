/* SPDX-License-Identifier: Apache-2.0 */
/* A controller in front of two honest nodes and one that lies: histories of fuzz/hostile/hostile_cluster.h.
 */
#include "fuzz/fuzz.h"
#include "fuzz/hostile/hostile_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hostile_cluster_run((struct span){data, size});
	return 0;
}
