/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads that share a counter without a lock: the thread sanitizer must report it. */
#include <pthread.h>

#define N_ROUNDS 100000

static unsigned counter;

static void *count(void *user)
{
	for (unsigned i = 0; i < N_ROUNDS; i++)
		counter++;
	return user;
}

int main(void)
{
	pthread_t other;

	if (pthread_create(&other, NULL, count, NULL) != 0)
		return 1;
	count(NULL);
	pthread_join(other, NULL);
	return counter == 0;
}
