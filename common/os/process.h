/*
 * process.h - what a server asks of the system for its process. Threads: before others start, or after they
 * ended.
 */
#pragma once

#include "base/error.h"

/** process_set_up() - for a server that needs @descriptors at most: room for them where that can be had, and
 * no signal when a peer goes away. What cannot be had is told in the log. */
void process_set_up(unsigned descriptors);

/** process_closing() - everything is being freed, for @seconds at most: then the process ends with a failure.
 * 0: it is done. */
void process_closing(unsigned seconds);

/** process_tell_end() - write why the process ends to the file that $TERMINATION_LOG_PATH names: Kubernetes
 * shows it (terminationMessagePath). A failure is told in the log. */
void process_tell_end(const struct error *e);
